import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, openRig, type Rig, sendParams, userMessage } from '../../packages/a2a-http/src/http-server.test-kit.ts';
import { HOSTILE } from '../fuzz/json-tree.ts';

/** JSON as text, because `JSON.stringify` cannot write these values. */
async function post(rig: Rig, body: string) {
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
  const response = await fetch(rig.url, { method: 'POST', headers, body });
  return { status: response.status, text: await response.text() };
}

const nested = (depth: number, inner = '1') => '{"a":'.repeat(depth) + inner + '}'.repeat(depth);
const message = (more: string) => `{"messageId":"m-${crypto.randomUUID()}","role":"ROLE_USER","parts":[{"text":"x"}]${more}}`;
const send = (more: string, params = '') =>
  `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message(more)}${params}}}`;

/** Members that would change an object's prototype in a careless parser or merge. */
const POLLUTION: Record<string, string> = {
  'in the request': '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{},"__proto__":{"polluted":1}}',
  'as params': '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"__proto__":{"polluted":1}}}',
  'in the message': send(',"__proto__":{"polluted":1}'),
  'in metadata of the message': send(',"metadata":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'),
  'in metadata of the request': send('', ',"metadata":{"__proto__":{"polluted":1}}'),
  'in metadata.agent': send('', ',"metadata":{"agent":"__proto__"}'),
  'in data': send('').replace(
    '{"text":"x"}',
    '{"data":{"__proto__":{"polluted":1},"a":{"constructor":{"prototype":{"polluted":1}}}}}',
  ),
  'in a part': send('').replace('{"text":"x"}', '{"text":"x","__proto__":{"polluted":1}}'),
  'as the method': '{"jsonrpc":"2.0","id":1,"method":"__proto__","params":{}}',
  'as the method constructor': '{"jsonrpc":"2.0","id":1,"method":"constructor","params":{}}',
  'as the method toString': '{"jsonrpc":"2.0","id":1,"method":"toString","params":{}}',
  'as a task id': '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"__proto__"}}',
  'as a context': '{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"contextId":"__proto__"}}',
  'as the id of the request': '{"jsonrpc":"2.0","id":"__proto__","method":"ListTasks","params":{}}',
};

test('JSON of clients', async t => {
  const rig = await openRig(t, { push: true, limits: { firstFactMsMax: 5_000 } });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const alive = async () => assert.equal((await call(rig, 'send', sendParams(userMessage('x')))).error, undefined);
  for (const [name, body] of Object.entries(POLLUTION))
    await t.test(`__proto__ changes no prototype ${name}`, async () => {
      assert.ok((await post(rig, body)).status < 500);
      assert.equal(({} as { polluted?: unknown }).polluted, undefined);
      assert.equal(([] as { polluted?: unknown }).polluted, undefined);
    });
  for (const [where, body] of [
    ['metadata of the message', (value: string) => send(`,"metadata":${value}`)],
    ['metadata of the request', (value: string) => send('', `,"metadata":${value}`)],
    ['data', (value: string) => send('').replace('{"text":"x"}', `{"data":${value}}`)],
  ] as const) {
    await t.test(`a value of 50 levels is accepted as ${where}`, async () => {
      assert.doesNotMatch((await post(rig, body(nested(50)))).text, /"error"/);
    });
    for (const depth of [65, 1_000, 6_500, 50_000])
      await t.test(`a value of ${depth} levels is refused as ${where}`, async () => {
        const { status, text } = await post(rig, body(nested(depth)));
        assert.ok(status < 500);
        assert.match(text, /"error"/);
        await alive();
      });
  }
  for (const value of HOSTILE)
    await t.test(`the server survives ${value.slice(0, 40)} in every member`, async () => {
      const bodies = [
        value,
        `{"jsonrpc":"2.0","id":${value},"method":"ListTasks"}`,
        `{"jsonrpc":${value},"id":1,"method":"ListTasks"}`,
        `{"jsonrpc":"2.0","id":1,"method":${value}}`,
        `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${value}}`,
        `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${value}}}`,
        send(`,"contextId":${value}`),
        send(`,"taskId":${value}`),
        `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":${value},"historyLength":${value}}}`,
      ];
      for (const body of bodies) {
        const { status, text } = await post(rig, body);
        assert.ok(status < 500, body.slice(0, 200));
        assert.doesNotMatch(text, /node_modules|\.ts:\d/);
      }
    });
  await alive();
  assert.ok(!rig.lines.some(({ message }) => message === 'request failed'));
});
