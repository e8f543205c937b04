import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { call, openRig, sendParams, userMessage } from '@hopline/a2a-http/test-kit';
import type { Authenticate } from '@hopline/a2a-server';
import { durableStreamsFront } from './durable-streams-front.ts';

const authenticate: Authenticate = async ({ headers }) => {
  const { 'x-subject': subject } = headers;
  if (subject === undefined) throw new A2AError('UNAUTHENTICATED');
  return { subject: String(subject) };
};

for (const [name, options, caching] of [
  ['with authentication no cache answers without asking the server', { authenticate }, 'private, no-cache'],
  ['without authentication a browser keeps an ended task for a minute', {}, 'private, max-age=60, stale-while-revalidate=300'],
] as const)
  test(`a Durable Stream: ${name}`, async t => {
    const rig = await openRig(t, { ...options, fronts: [durableStreamsFront] });
    rig.relay.onClient = taskId => rig.relay.answer(taskId, ['secret']);
    const anna = { 'x-subject': 'anna' };
    const { result } = await call(rig, 'send', sendParams(userMessage('x')), { headers: anna });
    const read = (headers: Record<string, string>) => fetch(`${rig.url}/tasks/${result.task.id}/stream`, { headers });
    const first = await read(anna);
    assert.match(await first.text(), /secret/);
    assert.equal(first.headers.get('cache-control'), caching);
    // A cache asks again in this way, with the credentials of its reader.
    const ask = async (headers: Record<string, string>) =>
      (await read({ ...headers, 'if-none-match': first.headers.get('etag')! })).status;
    const answers = [await ask(anna), await ask({ 'x-subject': 'bert' }), await ask({})];
    assert.deepEqual(answers, 'authenticate' in options ? [304, 404, 401] : [304, 304, 304]);
  });
