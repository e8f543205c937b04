import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { JsonObject, Message, Task } from '@hopline/a2a';
import type { Authenticate } from '@hopline/a2a-server';
import { contextKey } from '@hopline/context-history';
import { LogUnavailable } from '@hopline/log';
import { call, open, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
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
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  return rig;
}

const taskOf = ({ result }: { result?: JsonObject }) => result?.task as Task;

test('the task of another caller or tenant is not found: get, cancel, subscribe, resume, continue, list, in every dialect', async t => {
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

test('contexts and message ids are separate per caller [S1-10]', async t => {
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

test('a task id chosen by one caller starts no task of another, not even with the same message [C-9]', async t => {
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

test('a stream of one caller continues while another is refused at the same task', async t => {
  const rig = await openRig(t, { authenticate });
  const begun = Promise.withResolvers<string>();
  rig.relay.onClient = taskId => begun.resolve(taskId);
  const stream = await open(rig, 'stream', sendParams(userMessage('x')), { headers: ANNA });
  const id = await begun.promise;
  await stream.take(1);
  assert.equal((await call(rig, 'subscribe', { id }, { headers: OTHERS[0]! })).error?.code, NOT_FOUND);
  await rig.relay.answer(id, ['ok']);
  assert((await stream.rest()).length > 0);
});

test('tasks of one context and caller list the earlier ones: for client contexts, new contexts and client task ids [S3-17 C-17]', async t => {
  const rig = await openOwned(t);
  const earlierOf = async (taskId: string) => {
    for await (const { record } of rig.log.facts.read(taskId, 1))
      for (const fact of record.facts) if (fact.kind === 'task.created') return fact.earlierTasks;
    return assert.fail('no such task');
  };
  const send = async (more: Partial<Message>, headers = ANNA) => {
    const { id, contextId } = taskOf(await call(rig, 'send', sendParams(userMessage('x', more)), { headers }));
    return { id, contextId };
  };
  const first = await send({});
  assert.equal(await earlierOf(first.id), undefined);
  const { contextId } = first;
  const second = await send({ contextId });
  const legacy = { id: 'own-id', sessionId: contextId, message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } };
  await call(rig, 'send', legacy, { dialect: 'legacy', headers: ANNA });
  const again = { contextId, messageId: 'sent-twice' };
  const [fourth, twice] = [await send(again), await send(again)];
  const fifth = await send({ contextId });
  assert.equal(fourth.id, twice.id);
  assert.deepEqual(await earlierOf(second.id), [first.id]);
  assert.deepEqual(await earlierOf('own-id'), [first.id, second.id]);
  assert.deepEqual(await earlierOf(fifth.id), [first.id, second.id, 'own-id', fourth.id]);
  for (const headers of OTHERS) {
    const other = await send({ contextId }, headers);
    assert.equal(await earlierOf(other.id), undefined, 'nothing of another caller is listed');
  }
});

test('a retry of a message claimed by a failed replica names the same earlier tasks [S3-17]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const [one, two] = [userMessage('one', { contextId: 'c' }), userMessage('two', { contextId: 'c' })];
  const first = taskOf(await call(rig, 'send', sendParams(one)));
  const append = rig.log.inputs.append.bind(rig.log.inputs);
  rig.log.inputs.append = async () => {
    throw new LogUnavailable('gone');
  };
  assert.equal((await call(rig, 'send', sendParams(two))).error?.code, -32603);
  rig.log.inputs.append = append;
  const other = await rig.another();
  const second = taskOf(await call(other, 'send', sendParams(two)));
  const { value } = (await rig.log.contexts.get(contextKey(undefined, 'c')))!;
  assert.deepEqual(value.tasks, [first.id, second.id]);
});
