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
  const begun = await call(
    rig,
    'send',
    sendParams(userMessage('mine', { metadata: { agent: 'guide' } }), '1.0', { blocking: false }),
    { headers: ANNA },
  );
  const { id } = taskOf(begun);
  for (const headers of OTHERS) {
    // The second replica has not served the task before.
    for (const replica of [rig, await rig.another()]) {
      for (const dialect of ['1.0', '0.3'] as const) {
        for (const method of ['get', 'cancel', 'subscribe'] as const) {
          const refused = await call(replica, method, { id }, { dialect, headers });
          assert.equal(refused.error?.code, NOT_FOUND, `${dialect} ${method}`);
        }
        const next = await call(replica, 'send', sendParams(userMessage('x', { taskId: id }), dialect), { dialect, headers });
        assert.equal(next.error?.code, NOT_FOUND, dialect);
      }
      const resumed = await call(replica, 'subscribe', { id }, { headers: { ...headers, 'last-event-id': '1.1' } });
      assert.equal(resumed.error?.code, NOT_FOUND);
      const listed = await rest(replica, 'GET /tasks', { headers });
      assert.deepEqual([listed.body.tasks, listed.body.totalSize], [[], 0]);
      for (const query of ['text=mine', 'agent=guide', 'minDurationMs=1'])
        assert.deepEqual((await rest(replica, `GET /tasks?${query}`, { headers })).body.tasks, [], query);
    }
  }
  const ofAnna = await rest(rig, 'GET /tasks', { headers: ANNA });
  assert.deepEqual(
    ofAnna.body.tasks.map((task: Task) => task.id),
    [id],
  );
  for (const query of ['text=mine', 'agent=guide'])
    assert.equal((await rest(rig, `GET /tasks?${query}`, { headers: ANNA })).body.tasks[0]?.id, id, query);
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

/** A first request in the April 2025 form, whose client chose the task id. */
const ownParams = (id: string, text: string) => ({ id, message: { role: 'user', parts: [{ type: 'text', text }] } });
const LEGACY = { dialect: 'legacy' } as const;

test('task ids are separate per caller: two callers use one id, and each reads, resumes and ends its own task [C-9]', async t => {
  const rig = await openRig(t, { authenticate, push: true });
  rig.relay.onClient = (taskId, { turn }) =>
    turn === 1 ? rig.relay.end(taskId, 'INPUT_REQUIRED') : rig.relay.answer(taskId, ['ok']);
  const callers = [ANNA, ...OTHERS];
  for (const [n, headers] of callers.entries()) {
    const as = { ...LEGACY, headers };
    const set = await call(rig, 'createPush', { id: 'chosen', pushNotificationConfig: { url: `https://${n}.example/` } }, as);
    assert.equal(set.result.id, 'chosen');
    const frames = await (await open(rig, 'stream', ownParams('chosen', `of ${n}`), as)).rest();
    assert.deepEqual(
      frames.flatMap(({ rpc, data }) => [rpc.result.id, rpc.result.taskId, JSON.parse(data).taskId]),
      frames.flatMap(() => ['chosen', 'chosen', 'chosen']),
    );
  }
  for (const [n, headers] of callers.entries()) {
    const as = { ...LEGACY, headers };
    const got = await call(rig, 'get', { id: 'chosen' }, as);
    assert.deepEqual(
      [got.result.id, got.result.history.map((one: Message) => [one.messageId, one.parts[0]!.text, one.taskId])],
      ['chosen', [['chosen', `of ${n}`, 'chosen']]],
    );
    const hook = await call(rig, 'getPush', { id: 'chosen' }, as);
    assert.deepEqual([hook.result.id, hook.result.pushNotificationConfig.url], ['chosen', `https://${n}.example/`]);
    const resumed = await open(rig, 'subscribe', { id: 'chosen' }, { ...as, headers: { ...headers, 'last-event-id': '1.1' } });
    const [next] = await resumed.take(1);
    assert.equal(next!.rpc.result.id, 'chosen');
    await resumed.cut();
  }
  const ended = await call(rig, 'cancel', { id: 'chosen' }, { ...LEGACY, headers: ANNA });
  assert.deepEqual([ended.result.id, ended.result.status.state], ['chosen', 'canceled']);
  const continued = await call(rig, 'send', ownParams('chosen', 'go on'), { ...LEGACY, headers: OTHERS[0]! });
  assert.deepEqual([continued.result.id, continued.result.history.length], ['chosen', 3]);
  const again = await call(rig, 'send', ownParams('chosen', 'x'), { ...LEGACY, headers: ANNA });
  assert.deepEqual([again.error?.code, again.error?.data.taskId], [-32004, 'chosen'], 'errors name the id of the client');
});

test('a task id that another caller uses gets the same answer as an unused id [C-9]', async t => {
  const rig = await openRig(t, { authenticate, push: true });
  const inLog: string[] = [];
  rig.relay.onClient = taskId => {
    inLog.push(taskId);
    return rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
  await call(rig, 'send', ownParams('used', 'x'), { ...LEGACY, headers: ANNA });
  const [ofAnna = ''] = inLog;
  for (const headers of OTHERS) {
    const answers = async (id: string) => {
      const as = { ...LEGACY, headers };
      const refused = [];
      for (const method of ['get', 'cancel', 'subscribe', 'getPush'] as const) refused.push(await call(rig, method, { id }, as));
      refused.push(await call(rig, 'subscribe', { id }, { ...as, headers: { ...headers, 'last-event-id': '1.1' } }));
      const begun = await call(rig, 'send', ownParams(id, 'y'), as);
      assert.equal(begun.result.status.state, 'input-required');
      return JSON.stringify(refused).replaceAll(id, 'ID');
    };
    assert.equal(await answers('used'), await answers('free'));
    // The log's own id for the other caller's task does not reveal the task either.
    for (const form of [LEGACY, {}])
      assert.equal((await call(rig, 'get', { id: ofAnna }, { ...form, headers })).error?.code, NOT_FOUND);
  }
  const first = await call(rig, 'get', { id: 'used' }, { ...LEGACY, headers: ANNA });
  assert.equal(first.result.history.length, 1, 'the first caller sees no message of the others');
});

test('other versions list and read a task under its id in the log, which the April 2025 form also accepts', async t => {
  const rig = await openOwned(t);
  await call(rig, 'send', ownParams('mine', 'x'), { ...LEGACY, headers: ANNA });
  const { body } = await rest(rig, 'GET /tasks', { headers: ANNA });
  const { id } = body.tasks[0];
  assert.match(id, /^own-[\w-]{22}-mine$/);
  assert.equal((await call(rig, 'get', { id }, { headers: ANNA })).result.id, id);
  assert.equal((await call(rig, 'get', { id: 'mine' }, { headers: ANNA })).error?.code, NOT_FOUND);
  assert.equal((await call(rig, 'get', { id }, { ...LEGACY, headers: ANNA })).result.id, 'mine');
  const ended = await call(rig, 'send', ownParams(id, 'y'), { ...LEGACY, headers: ANNA });
  assert.equal(ended.error?.code, -32004, 'the id in the log names the same task');
});

test("a client's task id has at most 101 characters when tasks have owners, else 128", async t => {
  const [owned, free] = [await openOwned(t), await openRig(t)];
  free.relay.onClient = taskId => free.relay.answer(taskId, ['ok']);
  const send = (rig: Rig, id: string) => call(rig, 'send', ownParams(id, 'x'), { ...LEGACY, headers: ANNA });
  assert.equal((await send(owned, 'x'.repeat(101))).result.id.length, 101);
  const { error } = await send(owned, 'x'.repeat(102));
  assert.deepEqual([error?.code, error?.message.includes('1 to 101 of')], [-32602, true]);
  assert.equal((await send(free, 'x'.repeat(128))).result.id.length, 128);
  assert.equal((await send(free, 'x'.repeat(129))).error?.code, -32602);
});

test("without authentication the client's task id is the id in the log, and is returned unchanged whatever its form", async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const lookalike = `own-${'x'.repeat(22)}-mine`;
  for (const id of ['mine', lookalike]) {
    assert.equal((await call(rig, 'send', ownParams(id, 'x'), LEGACY)).result.id, id);
    assert.equal((await call(rig, 'get', { id }, LEGACY)).result.id, id);
  }
  assert.notEqual(rig.relay.aggregate('mine'), undefined);
});

test('a stream of one caller continues while the same task is refused to another caller', async t => {
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

test('a task names the earlier tasks of its context and caller: for client contexts, new contexts and client task ids [S3-17 C-17]', async t => {
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
  await call(rig, 'send', { ...ownParams('own-id', 'x'), sessionId: contextId }, { ...LEGACY, headers: ANNA });
  const third = taskOf({ result: { task: (await rest(rig, 'GET /tasks', { headers: ANNA })).body.tasks[0] } }).id;
  assert.match(third, /own-id$/);
  const again = { contextId, messageId: 'sent-twice' };
  const [fourth, twice] = [await send(again), await send(again)];
  const fifth = await send({ contextId });
  assert.equal(fourth.id, twice.id);
  assert.deepEqual(await earlierOf(second.id), [first.id]);
  assert.deepEqual(await earlierOf(third), [first.id, second.id]);
  assert.deepEqual(await earlierOf(fifth.id), [first.id, second.id, third, fourth.id]);
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
