import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Authenticate, LIMITS, type Limits } from '@hopline/a2a-server';
import { untilTick } from '../../../test/kit/until.ts';
import { type CallOptions, call, open, openRig, post, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { restResponse } from './rest.test-kit.ts';
import type { ExportTask } from './task-export-route.ts';

const authenticate: Authenticate = async ({ headers }) => ({ tenant: 't', subject: String(headers['x-subject']) });
const ANNA = { 'x-subject': 'anna' };
const BERT = { 'x-subject': 'bert' };
/** A rate so low that no used bytes are restored while a test runs. */
const NEVER_PER_SECOND = 0.001;
const MESSAGE = userMessage('x'.repeat(10_000), { messageId: 'm', contextId: 'c' });

const audits = { report: async () => ({ report: 'x'.repeat(100) }), explain: async () => ({ event: 'x'.repeat(100) }) };

/** A task of Anna, and servers that send each caller `burst` bytes. */
async function openTask(t: TestContext, exportTask?: ExportTask) {
  const unlimited = await openRig(t, { authenticate, audits, push: true, ...(exportTask && { exportTask }) });
  unlimited.relay.onClient = taskId => unlimited.relay.end(taskId, 'COMPLETED');
  const { result } = await call(unlimited, 'send', sendParams(MESSAGE), { headers: ANNA });
  const limitedTo = (ownerSentBytesBurst: number, more: Partial<Limits> = {}, asCaller = authenticate) =>
    unlimited.another({
      limits: { ownerSentBytesPerSecond: NEVER_PER_SECOND, ownerSentBytesBurst, ...more },
      authenticate: asCaller,
    });
  return { unlimited, taskId: result.task.id as string, limitedTo };
}

type Read = (rig: Rig, taskId: string) => Promise<Response>;
const rpc =
  (...[method, params, options]: [Parameters<typeof post>[1], (taskId: string) => unknown, CallOptions?]): Read =>
  (rig, taskId) =>
    post(rig, method, params(taskId), { ...options, headers: ANNA });
const get =
  (path: (taskId: string) => string, headers: Record<string, string> = {}): Read =>
  (rig, taskId) =>
    restResponse(rig, `GET ${path(taskId)}`, { headers: { ...ANNA, ...headers } });
const LIST = () => ({ includeArtifacts: true, historyLength: 10 });

const READS: Readonly<Record<string, Read>> = {
  'GetTask, JSON-RPC 1.0': rpc('get', id => ({ id })),
  'tasks/get, JSON-RPC 0.3': rpc('get', id => ({ id }), { dialect: '0.3' }),
  'ListTasks, JSON-RPC 1.0': rpc('list', LIST),
  'a message that was sent before, JSON-RPC 1.0': rpc('send', () => sendParams(MESSAGE)),
  'GET /tasks/{id}, HTTP+JSON 1.0': get(id => `/tasks/${id}`),
  'GET /tasks, HTTP+JSON 1.0': get(() => '/tasks?includeArtifacts=true&historyLength=10'),
  'GET /v1/tasks/{id}, HTTP+JSON 0.3': get(id => `/v1/tasks/${id}`, { 'a2a-version': '0.3' }),
  'an audit': get(id => `/tasks/${id}/audit`),
  'the audit of an event': get(id => `/tasks/${id}/audit/1.1`),
  'the deliveries of a task': get(id => `/tasks/${id}/deliveries`),
};

for (const [name, read] of Object.entries(READS)) {
  test(`${name}: its bytes count against the budget, and beyond it a request gets 429 with Retry-After`, async t => {
    const { unlimited, taskId, limitedTo } = await openTask(t);
    const size = (await (await read(unlimited, taskId)).arrayBuffer()).byteLength;
    for (const [burst, answers] of [
      [2 * size - 1, 2],
      [2 * size, 3],
    ] as const) {
      const rig = await limitedTo(burst);
      for (let n = 1; n <= answers; n += 1) assert.equal((await read(rig, taskId)).status, 200, `${n} of ${answers}`);
      const refused = await read(rig, taskId);
      assert.deepEqual([refused.status, refused.headers.has('retry-after')], [429, true]);
      assert.match(await refused.text(), /too many bytes were sent to this caller or its tenant/);
      assert.equal(rig.totals.requestsRefused, 1);
    }
  });
}

test('concurrent reads are answered only as far as the budget allows', { timeout: 120_000 }, async t => {
  const { unlimited, taskId, limitedTo } = await openTask(t);
  const size = (await (await post(unlimited, 'get', { id: taskId }, { headers: ANNA })).arrayBuffer()).byteLength;
  let callers = 0;
  const counted: Authenticate = request => {
    callers += 1;
    return authenticate(request);
  };
  const rig = await limitedTo(2 * size - 1, {}, counted);
  const { read } = rig.log.facts;
  const allBegun = Promise.withResolvers<void>();
  rig.log.facts.read = async function* (...args) {
    await allBegun.promise;
    yield* read.apply(rig.log.facts, args);
  };
  const answers = Array.from({ length: 20 }, () => post(rig, 'get', { id: taskId }, { headers: ANNA }));
  await untilTick(() => callers >= answers.length);
  allBegun.resolve();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  assert.deepEqual([statuses.filter(status => status === 200).length, statuses.filter(status => status === 429).length], [2, 18]);
});

test('a caller beyond its budget may still cancel and open streams; other callers of its tenant have budgets of their own', async t => {
  const { unlimited, taskId, limitedTo } = await openTask(t);
  unlimited.relay.onClient = () => {};
  const begun = await call(unlimited, 'send', sendParams(userMessage('y'), '1.0', { blocking: false }), { headers: ANNA });
  const { id } = begun.result.task;
  const rig = await limitedTo(1, { tenantLimitFactor: 1_000_000 });
  assert.equal((await post(rig, 'get', { id: taskId }, { headers: ANNA })).status, 200);
  assert.equal((await post(rig, 'get', { id: taskId }, { headers: ANNA })).status, 429);
  for (const response of [
    await open(rig, 'subscribe', { id }, { headers: ANNA }),
    await open(rig, 'stream', sendParams(userMessage('z')), { headers: ANNA }),
  ])
    assert.equal(response.response.status, 200);
  const canceled = await call(rig, 'cancel', { id }, { headers: ANNA });
  assert.equal(canceled.result?.status.state, 'TASK_STATE_CANCELED');
  assert.equal((await post(rig, 'list', {}, { headers: BERT })).status, 200);
});

test("bytes that one caller reads are taken from its tenant's budget", async t => {
  const { taskId, limitedTo } = await openTask(t);
  const rig = await limitedTo(1_000, { tenantLimitFactor: 2 });
  assert.equal((await post(rig, 'get', { id: taskId }, { headers: ANNA })).status, 200);
  assert.equal((await post(rig, 'list', {}, { headers: BERT })).status, 429);
});

test('without authentication there is no budget', async t => {
  const rig = await openRig(t, { limits: { ...LIMITS, ownerSentBytesPerSecond: NEVER_PER_SECOND, ownerSentBytesBurst: 1 } });
  for (let n = 1; n <= 3; n += 1) assert.equal((await post(rig, 'list', {})).status, 200);
});

test('an export beyond the budget is paced and complete, and the next request gets 429', async t => {
  const lines = Array.from({ length: 10 }, (_, n) => `${n}`.repeat(999).concat('\n'));
  const { taskId, limitedTo } = await openTask(t, async () => ReadableStream.from(lines));
  const exported = (rig: Rig) => restResponse(rig, `GET /tasks/${taskId}/export`, { headers: ANNA });
  // The last five of the ten lines wait 20 ms each.
  const paced = await limitedTo(5_000, { ownerSentBytesPerSecond: 50_000 });
  const startedMs = performance.now();
  assert.equal(await (await exported(paced)).text(), lines.join(''));
  assert.ok(performance.now() - startedMs >= 80, `${performance.now() - startedMs} ms`);
  const rig = await limitedTo(9_999);
  assert.equal(await (await exported(rig)).text(), lines.join(''));
  assert.equal((await exported(rig)).status, 429);
  assert.equal((await post(rig, 'get', { id: taskId }, { headers: ANNA })).status, 429);
});
