// A tool's whole life through the official TypeScript client, in both eras, each change announced and then seen.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';

import { builtins, Connection, eventually, modes, startServer, within } from './harness.mjs';

const hello = "def main(name: str, times: int = 1) -> str:\n    return ', '.join(['Hello'] * times) + f' {name}'\n";
const goodbye = hello.replace('Hello', 'Goodbye');
const freeName = (prefix) => `${prefix}_${randomUUID().slice(0, 8)}`;
const named = (tools, name) => tools.find((tool) => tool.name === name);

let server;
before(async () => {
    server = await startServer();
});
after(async () => {
    await server?.stop();
});

for (const { mode, era, version } of modes) {
    describe(`in mode ${mode}`, () => {
        let connection;
        before(async () => {
            connection = await Connection.overHttp(server, { mode });
        });
        after(async () => {
            await connection?.close();
        });

        test('both sides agree on the version', () => {
            assert.equal(connection.client.getNegotiatedProtocolVersion(), version);
            assert.equal(connection.client.getProtocolEra(), era);
            assert.equal(connection.client.getServerVersion().name, 'omniforge-mcp');
            assert.equal(connection.client.getServerCapabilities().tools.listChanged, true);
        });

        test('a tool is created, called, changed, rolled back, switched and deleted', async () => {
            const tool = freeName('greet');
            const first = (await connection.client.listTools()).tools.slice(0, builtins).map(({ name }) => name);
            assert.deepEqual(first.slice(0, 2), ['omniforge_instructions', 'omniforge_create_tool']);

            const saved = await connection.call('omniforge_create_tool', { name: tool, code: hello });
            assert.equal(saved.isError, false, saved.text);
            let tools = await connection.changedUntil((list) => named(list, tool), 'the new tool is listed');
            assert.equal(tools[builtins].name, tool);
            assert.deepEqual(named(tools, tool).inputSchema.required, ['name']);
            assert.equal((await connection.call(tool, { name: 'Ada', times: 2 })).text, 'Hello, Hello Ada');

            const update = { name: tool, code: goodbye, title: 'Parting' };
            assert.equal((await connection.call('omniforge_update_tool', update)).isError, false);
            await connection.changedUntil((list) => named(list, tool)?.title === 'Parting', 'the change is listed');
            assert.equal((await connection.call(tool, { name: 'Ada' })).text, 'Goodbye Ada');

            const rolled = await connection.call('omniforge_rollback_tool', { name: tool, version: 1 });
            assert.match(rolled.text, /version 3/);
            await connection.changedUntil((list) => named(list, tool)?.title !== 'Parting', 'the first version is back');
            assert.equal((await connection.call(tool, { name: 'Ada' })).text, 'Hello Ada');

            await connection.call('omniforge_set_enabled', { name: tool, enabled: false });
            await connection.changedUntil((list) => !named(list, tool), 'the tool is off');
            await assert.rejects(connection.call(tool, { name: 'Ada' }), { code: -32602 });

            await connection.call('omniforge_set_enabled', { name: tool, enabled: true });
            await connection.changedUntil((list) => named(list, tool), 'the tool is on');
            assert.equal((await connection.call(tool, { name: 'Ada' })).text, 'Hello Ada');

            assert.equal((await connection.call('omniforge_delete_tool', { name: tool })).isError, false);
            await connection.changedUntil((list) => !named(list, tool), 'the tool is gone');
            await assert.rejects(connection.call(tool, { name: 'Ada' }), { code: -32602 });
        });

        test('a save by another client is heard of', async () => {
            const tool = freeName('other');
            const other = await Connection.overHttp(server, { mode });
            try {
                await other.call('omniforge_create_tool', { name: tool, code: hello });
                await connection.changedUntil((list) => named(list, tool), 'the tool of the other client is listed');
            } finally {
                await other.close();
            }
        });

        test('progress arrives in order', async () => {
            const tool = freeName('steps');
            const code = 'import time\n\ndef main(ctx):\n    for step in range(1, 6):\n        ctx.progress(step, 5, f"step {step}")\n        time.sleep(0.2)\n    return "done"\n';
            await connection.call('omniforge_create_tool', { name: tool, code });
            await connection.changedUntil((list) => named(list, tool), 'the tool is listed');
            const steps = [];
            const result = await connection.call(tool, {}, { onprogress: (progress) => steps.push(progress) });
            assert.equal(result.text, 'done');
            assert.deepEqual(steps, [1, 2, 3, 4, 5].map((step) => ({ progress: step, total: 5, message: `step ${step}` })));
        });

        test('an aborted call is cancelled on the server', async () => {
            const tool = freeName('endless');
            const code = 'import time\n\ndef main(ctx):\n    while True:\n        ctx.progress(1)\n        time.sleep(0.02)\n';
            await connection.call('omniforge_create_tool', { name: tool, code });
            await connection.changedUntil((list) => named(list, tool), 'the tool is listed');
            const abort = new AbortController();
            const progressed = Promise.withResolvers();
            const options = { signal: abort.signal, onprogress: () => progressed.resolve() };
            // Handled from the start: a rejection that nobody waits for yet would fail the test by itself.
            const ended = connection.call(tool, {}, options).then(() => 'answered', () => 'rejected');
            await within(5000, progressed.promise, 'the run says that it goes on');
            await eventually(async () => {
                const { structuredContent } = await connection.call('omniforge_list_runs', { tool });
                return structuredContent.runs[0]?.status === 'running';
            }, 'the run is alive');
            abort.abort('enough');
            assert.equal(await within(5000, ended, 'the call ends'), 'rejected');
            await eventually(async () => {
                const { structuredContent } = await connection.call('omniforge_list_runs', { tool });
                return structuredContent.runs[0].status === 'cancelled';
            }, 'the run is cancelled');
        });

        test('results match their output schema and errors are results', async () => {
            const tool = freeName('sum');
            const output_schema = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] };
            const code = "from omniforge import ToolError\n\ndef main(a: int, b: int):\n    if b < 0:\n        raise ToolError('b is negative')\n    return {'sum': a + b}\n";
            await connection.call('omniforge_create_tool', { name: tool, code, output_schema });
            await connection.changedUntil((list) => named(list, tool)?.outputSchema, 'the tool is listed');
            assert.deepEqual((await connection.call(tool, { a: 2, b: 3 })).structuredContent, { sum: 5 });
            const failed = await connection.call(tool, { a: 2, b: -3 });
            assert.deepEqual([failed.isError, failed.text], [true, 'b is negative']);
            const wrong = await connection.call(tool, { a: 'two', b: 3 });
            assert.equal(wrong.isError, true);
            assert.match(wrong.text, /^Arguments do not match inputSchema/);
        });

        test('stdio serves the same', async () => {
            const local = await Connection.overStdio(`${server.folder}/stdio-${mode}`, { mode });
            try {
                const tool = freeName('local');
                assert.equal(local.client.getNegotiatedProtocolVersion(), version);
                await local.call('omniforge_create_tool', { name: tool, code: hello });
                await local.changedUntil((list) => named(list, tool), 'the tool is listed');
                assert.equal((await local.call(tool, { name: 'Ada' })).text, 'Hello Ada');
            } finally {
                await local.close();
            }
        });
    });
}
