import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { createA2AServer } from '@hopline/a2a-server';
import type { AgentInput } from '@hopline/events';
import { LogUnavailable } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { createLogger } from '@hopline/telemetry';
import fastify from 'fastify';
import { AUDIT_INPUT_BYTES_MAX, AUDIT_RECORDS_MAX, AUDITS_AT_ONCE_MAX, registerTaskAudit } from './task-audit-route.ts';

const TASK = 'task-1';
const SECRET = 'what is the password';
const ANSWER = 'it is 1234';
const ANN = { subject: 'ann' };

/** A server with one task of Ann's. A request names its caller in the header `caller`. */
async function openServer(t: TestContext) {
  const log = createMemoryLog();
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: SECRET }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe', owner: ANN } as const;
  await log.inputs.append(TASK, { v: 1, at: 1, from: 'client', input }, { id: '1' });
  const from = supervisor();
  const open: AgentInput = { kind: 'open', lane: 'a', artifact: { name: 'partial_result' } };
  const inputs: AgentInput[] = [open, { kind: 'text', lane: 'a', tokens: [ANSWER] }];
  const { seq } = await log.inputs.append(TASK, { v: 1, at: 5, from, n: 1, inputs }, { id: '2' });
  const chunk = { firstSeq: seq, lastSeq: seq, count: 1, n: 2, reason: 'first', heldMs: 0, firstAt: 5, lastAt: 5 };
  const task = new StoredScenario(log.facts, TASK, () => 7)
    .when({ kind: 'client', taskId: TASK, input })
    .input(from, open)
    .when({ kind: 'run', from, lane: 'a', text: ANSWER, last: false, n: 2, chunk });
  task.aggregate = { ...task.aggregate!, foldedSeq: seq };
  await task.store();
  const authenticate = async ({ headers }: { headers: Record<string, string | string[] | undefined> }) => {
    if (headers.caller === undefined) throw new A2AError('UNAUTHENTICATED');
    return { subject: String(headers.caller) };
  };
  const logger = createLogger({ service: 'ingress', instance: 'test', level: 'silent' });
  const server = createA2AServer({ log, role: 'supervisor', profile: 'caipe', logger, authenticate });
  const app = fastify();
  registerTaskAudit(app, server);
  t.after(async () => {
    server.close();
    await app.close();
  });
  const get = (caller?: string, taskId = TASK) =>
    app.inject({ url: `/tasks/${taskId}/audit`, headers: caller === undefined ? {} : { caller } });
  return { log, get };
}

test('the owner of a task reads where its time went and that nothing was lost, without any text [S2-32 S2-41 S4-43]', async t => {
  const { get } = await openServer(t);
  const response = await get('ann');
  assert.equal(response.statusCode, 200);
  assert.deepEqual(
    [response.headers['content-type'], response.headers['cache-control']],
    ['application/json; charset=utf-8', 'no-store'],
  );
  const { taskId, state, producers, events, audit } = response.json();
  assert.deepEqual([taskId, state], [TASK, 'submitted']);
  assert.deepEqual([producers[0].id, producers[0].tokens, events.at(-1).chunk.tokens], ['supervisor', 1, 1]);
  assert.deepEqual([audit.unaccounted.text, audit.differing, audit.incomplete], [0, [], false]);
  assert.doesNotMatch(response.body, /password|1234/);
});

test('the task of another owner is as unknown as one that does not exist', async t => {
  const { get } = await openServer(t);
  const answers = await Promise.all([get('bob'), get('ann', 'unknown'), get('ann', 'no*id')]);
  for (const { statusCode, body } of answers) assert.deepEqual([statusCode, body], [404, answers[0]!.body]);
  assert.equal((await get()).statusCode, 401);
});

test('a log that is away is 503 with Retry-After', async t => {
  const { get, log } = await openServer(t);
  log.facts.last = () => Promise.reject(new LogUnavailable('gone'));
  const response = await get('ann');
  assert.deepEqual([response.statusCode, response.headers['retry-after']], [503, '1']);
});

test(`a task of ${AUDIT_RECORDS_MAX} records, or ${AUDIT_INPUT_BYTES_MAX} bytes of inputs, is audited, one more is 400`, async t => {
  const { get, log } = await openServer(t);
  // The task has one record of facts.
  let [count, bytes] = [AUDIT_RECORDS_MAX - 1, 10];
  log.inputs.read = async function* () {
    const record = { v: 1, at: 1, from: 'relay', input: { kind: 'timeout', request: 1 } } as const;
    for (let index = 0; index < count; index++) yield { seq: index, taskId: TASK, record, bytes, storedAt: 1 };
  };
  assert.equal((await get('ann')).statusCode, 200);
  count += 1;
  const response = await get('ann');
  assert.equal(response.statusCode, 400);
  assert.match(response.json().error.message, /more than 20000 records/);
  [count, bytes] = [1, AUDIT_INPUT_BYTES_MAX];
  assert.equal((await get('ann')).statusCode, 200);
  bytes += 1;
  assert.match((await get('ann')).json().error.message, /inputs of the task have more than 33554432 bytes/);
});

test(`${AUDITS_AT_ONCE_MAX} audits run at once, one more is 503`, async t => {
  const { get, log } = await openServer(t);
  const go = Promise.withResolvers<void>();
  let reading = 0;
  const started = Promise.withResolvers<void>();
  const { read } = log.inputs;
  log.inputs.read = async function* (taskId) {
    reading += 1;
    if (reading === AUDITS_AT_ONCE_MAX) started.resolve();
    await go.promise;
    yield* read.call(log.inputs, taskId);
  };
  const first = Array.from({ length: AUDITS_AT_ONCE_MAX }, () => get('ann'));
  await started.promise;
  assert.equal((await get('ann')).statusCode, 503);
  go.resolve();
  for (const { statusCode } of await Promise.all(first)) assert.equal(statusCode, 200);
  assert.equal((await get('ann')).statusCode, 200);
});
