// The official TypeScript SDK with the bench's tool in its own process. Usage: typescript_server.mjs PORT.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: 'peer', version: '1.0.0' });
  server.registerTool(
    'echo',
    { description: 'Gives the text back.', inputSchema: z.object({ text: z.string() }) },
    async ({ text }) => ({ content: [{ type: 'text', text }] }),
  );
  return server;
});

createServer(toNodeHandler(handler)).listen(Number(process.argv[2]), '127.0.0.1');
