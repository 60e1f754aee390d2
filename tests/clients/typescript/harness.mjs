// A real OmniForge server for a test, and the official TypeScript client connected to it in either era.
//
// The program is $OMNIFORGE_BIN, else target/debug/omniforge. Nothing here waits a fixed time.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const root = resolve(import.meta.dirname, '../../..');
export const program = resolve(process.env.OMNIFORGE_BIN ?? join(root, 'target/debug/omniforge'));
export const builtins = 19;

/** Both ways of the client: 2026-07-28 where the server has it, and the plain handshake. */
export const modes = [
    { mode: 'auto', era: 'modern', version: '2026-07-28' },
    { mode: 'legacy', era: 'legacy', version: '2025-11-25' },
];

/** Our environment without OMNIFORGE_* settings, and with the checkout's own uv where there is no other. */
export function environment() {
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('OMNIFORGE_'));
    const found = Object.fromEntries(kept);
    return { ...found, PATH: [found.PATH, join(root, '.tools/bin')].join(delimiter) };
}

/** Resolves with the promise's value, or rejects after so many milliseconds. */
export async function within(milliseconds, promise, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not within ${milliseconds} ms: ${what}`)), milliseconds);
    });
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}

/** Polls until `check` answers something true. */
export async function eventually(check, what, milliseconds = 5000) {
    const deadline = Date.now() + milliseconds;
    for (;;) {
        const found = await check();
        if (found) return found;
        if (Date.now() > deadline) throw new Error(`not within ${milliseconds} ms: ${what}`);
        await new Promise((done) => setTimeout(done, 20));
    }
}

/** Starts `omniforge serve` on a fresh directory; `stop` ends it and removes the directory. */
export async function startServer(...options) {
    const folder = await mkdtemp(join(tmpdir(), 'omniforge-test-'));
    const log = await open(join(folder, 'server.log'), 'w');
    const place = ['--listen', '127.0.0.1:0', '--ready-json', '--data-dir', join(folder, 'data')];
    const child = spawn(program, ['serve', ...place, ...options], {
        stdio: ['ignore', 'pipe', log.fd],
        env: environment(),
    });
    const exited = once(child, 'exit');
    const logEnd = async () => (await readFile(join(folder, 'server.log'), 'utf8')).split('\n').slice(-60).join('\n');
    const lines = createInterface({ input: child.stdout });
    const ended = exited.then(async ([status]) => {
        throw new Error(`the server ended with status ${status}\n${await logEnd()}`);
    });
    ended.catch(() => {});
    const [line] = await within(60_000, Promise.race([once(lines, 'line'), ended]), 'the server is ready');
    const stop = async () => {
        child.kill('SIGTERM');
        try {
            const [status] = await within(20_000, exited, 'the server stops after SIGTERM');
            if (status !== 0) throw new Error(`the server stopped with status ${status}\n${await logEnd()}`);
        } finally {
            child.kill('SIGKILL');
            await log.close();
            await rm(folder, { recursive: true, force: true });
        }
    };
    return { ...JSON.parse(line), folder, dataDir: join(folder, 'data'), stop };
}

/** A connected client that keeps the changes of the tool list it was told of. */
export class Connection {
    #changes = [];
    #waiting = [];

    constructor(transport, { mode, capabilities = {} }) {
        const onChanged = (error, tools) => {
            const next = this.#waiting.shift();
            if (next) next({ error, tools });
            else this.#changes.push({ error, tools });
        };
        this.transport = transport;
        this.client = new Client(
            { name: 'omniforge-tests', version: '1.0.0' },
            { versionNegotiation: { mode }, capabilities, listChanged: { tools: { debounceMs: 0, onChanged } } },
        );
    }

    static async overHttp(server, { mode, token = server.token, ...options }) {
        let streamOpen;
        const opened = new Promise((done) => (streamOpen = done));
        const watched = async (url, init) => {
            const response = await fetch(url, init);
            if ((init?.method ?? 'GET') === 'GET' && response.ok) streamOpen();
            return response;
        };
        const requestInit = { headers: { Authorization: `Bearer ${token}` } };
        const transport = new StreamableHTTPClientTransport(new URL(server.mcp), { requestInit, fetch: watched });
        const connection = new Connection(transport, { mode, ...options });
        await connection.client.connect(transport);
        // A change is told on the GET stream in the legacy era: one before it is open would be missed.
        if (mode === 'legacy') await within(10_000, opened, 'the GET stream is open');
        return connection;
    }

    static async overStdio(dataDir, { mode, ...options }) {
        const args = ['stdio', '--data-dir', dataDir];
        const transport = new StdioClientTransport({ command: program, args, env: environment(), stderr: 'ignore' });
        const connection = new Connection(transport, { mode, ...options });
        await connection.client.connect(transport);
        return connection;
    }

    /** The tool list as the client refetched it after the next change. */
    async changed(milliseconds = 5000) {
        const told = this.#changes.shift() ?? new Promise((done) => this.#waiting.push(done));
        const { error, tools } = await within(milliseconds, Promise.resolve(told), 'the tool list has changed');
        if (error) throw error;
        return tools;
    }

    /** Refetched lists, until one is as expected: several changes may be told apart. */
    async changedUntil(expected, what) {
        return await within(
            10_000,
            (async () => {
                for (;;) {
                    const tools = await this.changed(10_000);
                    if (expected(tools)) return tools;
                }
            })(),
            what,
        );
    }

    /** Calls a tool; its text stands beside the result. */
    async call(name, args = {}, options = undefined) {
        const result = await this.client.callTool({ name, arguments: args }, options);
        const text = result.content.filter((block) => block.type === 'text').map((block) => block.text);
        return { ...result, text: text.join('\n'), isError: result.isError ?? false };
    }

    async close() {
        await this.client.close();
    }
}
