// Scripts that ask, and runs that outlast their call, through the official TypeScript client in both eras.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Connection, eventually, modes, startServer } from './harness.mjs';

const ask = `def main(ctx, city: str):
    form = {"type": "object", "properties": {"guests": {"type": "integer", "minimum": 1}}, "required": ["guests"]}
    answer = ctx.elicit(f"A table in {city}?", form)
    if not answer.accepted:
        return answer.action
    poem = ctx.sample("Greet them", max_tokens=20)
    return f"{answer.content['guests']} guests, {poem.text}, {[root['uri'] for root in ctx.roots()]}"
`;
const wait = "import time\n\n\ndef main(seconds: float) -> dict:\n    time.sleep(seconds)\n    return {'slept': seconds}\n";
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
const slept = { type: 'object', properties: { slept: { type: 'number' } }, required: ['slept'] };

let server;
before(async () => {
    server = await startServer('--inline-wait-seconds', '1');
    const author = await Connection.overHttp(server, { mode: 'legacy' });
    await author.call('omniforge_create_tool', { name: 'ask', code: ask });
    await author.call('omniforge_create_tool', { name: 'slow', code: wait, output_schema: slept });
    await author.call('omniforge_create_tool', { name: 'later', code: wait, output_schema: slept, mode: 'async' });
    await author.close();
});
after(async () => {
    await server?.stop();
});

/** What the person, the model and the client of a connection answer; what they were asked stands in `asked`. */
function answering(connection, action) {
    const asked = [];
    const answers = {
        'elicitation/create': () => (action === 'accept' ? { action, content: { guests: 3 } } : { action }),
        'sampling/createMessage': () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'welcome' } }),
        'roots/list': () => ({ roots: [{ uri: 'file:///here' }] }),
    };
    for (const [method, answer] of Object.entries(answers)) {
        connection.client.setRequestHandler(method, (request) => {
            asked.push(request);
            return answer();
        });
    }
    return asked;
}

for (const { mode } of modes) {
    describe(`in mode ${mode}`, () => {
        test('a script asks the person, the model and the client', async () => {
            const connection = await Connection.overHttp(server, { mode, capabilities });
            try {
                const asked = answering(connection, 'accept');
                const result = await connection.call('ask', { city: 'Bath' });
                assert.equal(result.text, "3 guests, welcome, ['file:///here']");
                assert.deepEqual(asked.map((request) => request.method), ['elicitation/create', 'sampling/createMessage', 'roots/list']);
                assert.match(asked[0].params.message, /^A table in Bath\?/);
            } finally {
                await connection.close();
            }
        });

        test('a person may decline', async () => {
            const connection = await Connection.overHttp(server, { mode, capabilities });
            try {
                answering(connection, 'decline');
                assert.equal((await connection.call('ask', { city: 'Bath' })).text, 'decline');
            } finally {
                await connection.close();
            }
        });

        test('a client that cannot be asked is told what is missing', async () => {
            const connection = await Connection.overHttp(server, { mode });
            try {
                // An error of the protocol where that has one for it, else a result that says so.
                const told = connection.call('ask', { city: 'Bath' }).then((result) => [result.isError, result.text]);
                const outcome = await told.catch((error) => [error.code, error.message]);
                assert.equal(outcome[0], mode === 'legacy' ? true : -32021);
                assert.match(outcome[1], /`ask` needs a client with elicitation/);
            } finally {
                await connection.close();
            }
        });

        test('a handle breaks no client that checks output schemas', async () => {
            const connection = await Connection.overHttp(server, { mode });
            try {
                const { tools } = await connection.client.listTools();
                const listed = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
                assert.deepEqual([Boolean(listed.slow.outputSchema), Boolean(listed.later.outputSchema)], [true, false]);
                assert.deepEqual((await connection.call('slow', { seconds: 0 })).structuredContent, { slept: 0 });
                const slow = await connection.call('slow', { seconds: 3 });
                assert.equal(slow.isError, true);
                assert.match(slow.text, /still running, do not call again/);
                const later = await connection.call('later', { seconds: 0.3 });
                assert.deepEqual([later.isError, later.structuredContent.status], [false, 'running']);
                const found = await eventually(async () => {
                    const job_id = later.structuredContent.job_id;
                    const { structuredContent } = await connection.call('get_job_result', { job_id });
                    return structuredContent.status === 'done' && structuredContent;
                }, 'the job is done');
                assert.deepEqual(found.result, { slept: 0.3 });
            } finally {
                await connection.close();
            }
        });
    });
}
