import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { JsonObject, Task } from '@hopline/a2a';
import type { Authenticate } from '@hopline/a2a-door';
import { call, open, openRig, type Rig, sendParams, userMessage } from './door.test-kit.ts';
import { rest } from './rest.test-kit.ts';

const authenticate: Authenticate = async ({ headers }) => ({
  tenant: String(headers['x-tenant']),
  subject: String(headers['x-subject']),
});
const ANNA = { 'x-tenant': 'a', 'x-subject': 'anna' };
const OTHERS = [
  { 'x-tenant': 'a', 'x-subject': 'bert' },
  { 'x-tenant': 'b', 'x-subject': 'anna' },
];
const NOT_FOUND = -32001;

async function openOwned(t: TestContext): Promise<Rig> {
  const rig = await openRig(t, { authenticate });
  rig.relay.onClient = taskId => rig.relay.answers(taskId, ['ok']);
  return rig;
}

const taskOf = ({ result }: { result?: JsonObject }) => result?.task as Task;

test("another caller's or tenant's task is not found: get, cancel, subscribe, resume, continue, list, in every dialect", async t => {
  const rig = await openRig(t, { authenticate });
  const begun = await call(rig, 'send', sendParams(userMessage('mine'), '1.0', { blocking: false }), { headers: ANNA });
  const { id } = taskOf(begun);
  for (const headers of OTHERS) {
    for (const dialect of ['1.0', '0.3'] as const) {
      for (const method of ['get', 'cancel', 'subscribe'] as const) {
        const refused = await call(rig, method, { id }, { dialect, headers });
        assert.equal(refused.error?.code, NOT_FOUND, `${dialect} ${method}`);
      }
      const next = await call(rig, 'send', sendParams(userMessage('x', { taskId: id }), dialect), { dialect, headers });
      assert.equal(next.error?.code, NOT_FOUND, dialect);
    }
    const resumed = await call(rig, 'subscribe', { id }, { headers: { ...headers, 'last-event-id': '1.1' } });
    assert.equal(resumed.error?.code, NOT_FOUND);
    const listed = await rest(rig, 'GET /tasks', { headers });
    assert.deepEqual([listed.body.tasks, listed.body.totalSize], [[], 0]);
  }
  const own = await rest(rig, 'GET /tasks', { headers: ANNA });
  assert.deepEqual(
    own.body.tasks.map((task: Task) => task.id),
    [id],
  );
  assert.equal(taskOf({ result: { task: (await call(rig, 'get', { id }, { headers: ANNA })).result } }).id, id);
});

test('S1-10 a context and a message id of two callers are two', async t => {
  const rig = await openOwned(t);
  const message = userMessage('x', { contextId: 'shared' });
  const params = sendParams(message);
  const [first, again] = [await call(rig, 'send', params, { headers: ANNA }), await call(rig, 'send', params, { headers: ANNA })];
  assert.equal(taskOf(first).id, taskOf(again).id);
  for (const headers of OTHERS) {
    const other = await call(rig, 'send', params, { headers });
    assert.notEqual(taskOf(other).id, taskOf(first).id);
  }
});

test('C-9 a task id that one caller chose begins no task of another, not even with the same message', async t => {
  const rig = await openOwned(t);
  const params = { id: 'chosen', message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } };
  const options = { dialect: 'legacy' as const };
  const first = await call(rig, 'send', params, { ...options, headers: ANNA });
  assert.equal(first.result.id, 'chosen');
  for (const headers of OTHERS) {
    const refused = await call(rig, 'send', params, { ...options, headers });
    assert.equal(refused.error?.code, NOT_FOUND);
  }
});

test('a stream of one caller goes on while another is refused at the same task', async t => {
  const rig = await openRig(t, { authenticate });
  const begun = Promise.withResolvers<string>();
  rig.relay.onClient = taskId => begun.resolve(taskId);
  const stream = await open(rig, 'stream', sendParams(userMessage('x')), { headers: ANNA });
  const id = await begun.promise;
  await stream.take(1);
  assert.equal((await call(rig, 'subscribe', { id }, { headers: OTHERS[0]! })).error?.code, NOT_FOUND);
  await rig.relay.answers(id, ['ok']);
  assert((await stream.rest()).length > 0);
});
