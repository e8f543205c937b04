import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Message, Metadata, Task } from '@hopline/a2a';
import type { Authenticate } from '@hopline/a2a-server';
import { readContextHistory } from '@hopline/context-history';
import { call, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';

const authenticate: Authenticate = async ({ headers }) => ({ subject: String(headers['x-subject']) });
const ANNA = { 'x-subject': 'anna' };
const BERT = { 'x-subject': 'bert' };

async function openAnswering(t: TestContext): Promise<Rig> {
  const rig = await openRig(t, { authenticate });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['four']);
  return rig;
}

type Sent = { fork?: unknown; more?: Partial<Message>; metadata?: Metadata; headers?: Record<string, string> };

async function send(rig: Rig, text: string, { fork, more, metadata, headers = ANNA }: Sent = {}) {
  const forkMetadata = { ...metadata, ...(fork !== undefined && { 'hopline.fork': fork }) };
  const params = {
    ...sendParams(userMessage(text, more)),
    ...(Object.keys(forkMetadata).length > 0 && { metadata: forkMetadata }),
  };
  const { result, error } = await call(rig, 'send', params, { headers });
  return { task: result?.task as Task, error };
}

async function historyOf({ log }: Rig, taskId: string): Promise<string[]> {
  const { messages } = await readContextHistory(log, (await log.facts.last(taskId))!, 1);
  return messages.map(({ parts }) => parts.map(({ text }) => text).join(''));
}

test('a fork is a new task in a new context with the history up to the cursor, and its metadata names the origin', async t => {
  const rig = await openAnswering(t);
  const { task: origin } = await send(rig, '2+2');
  const before = await call(rig, 'get', { id: origin.id }, { headers: ANNA });
  const fork = { taskId: origin.id, cursor: '2.0' };
  const { task } = await send(rig, 'and now?', { fork, metadata: { own: 1, 'hopline.role': 'x' } });
  assert.notEqual(task.contextId, origin.contextId);
  assert.deepEqual(task.metadata, { own: 1, 'hopline.fork': fork });
  assert.deepEqual(await historyOf(rig, task.id), ['2+2']);
  const { generation } = rig.relay.aggregate(origin.id);
  const last = await send(rig, 'and now?', { fork: { taskId: origin.id, cursor: `${generation}.0` } });
  assert.deepEqual(await historyOf(rig, last.task.id), ['2+2', 'four']);
  assert.deepEqual(await call(rig, 'get', { id: origin.id }, { headers: ANNA }), before);
});

test('an unknown cursor, a task of another caller, an expired task and a context in use are each refused, and nothing is stored', async t => {
  const rig = await openAnswering(t);
  const { task: origin } = await send(rig, '2+2');
  const { task: expired } = await send(rig, '3+3');
  const { task: cut } = await send(rig, '4+4');
  rig.log.expire('facts', expired.id, 1_000_000);
  rig.log.expire('facts', cut.id, (await rig.log.facts.last(cut.id))!.seq);
  const { generation } = rig.relay.aggregate(origin.id);
  const { lastSeq } = await rig.log.inputs.extent();
  const claims = await rig.log.messageIds.revision();
  const contexts = await rig.log.contexts.revision();
  const point = { taskId: origin.id, cursor: '1.1' };
  const refusals: [Sent, number, RegExp][] = [
    [{ fork: 'x' }, -32602, /must be \{"taskId", "cursor"\}/],
    [{ fork: { ...point, cursor: '0.1' } }, -32602, /must be/],
    [{ fork: { ...point, cursor: `${generation + 1}.1` } }, -32602, /cursor does not belong to this task/],
    [{ fork: { ...point, taskId: 'unknown' } }, -32001, /not found/i],
    [{ fork: point, headers: BERT }, -32001, /not found/i],
    [{ fork: { ...point, taskId: expired.id } }, -32001, /not found/i],
    [{ fork: { ...point, taskId: cut.id } }, -32004, /beginning of the task has expired/],
    [{ fork: point, more: { taskId: origin.id } }, -32602, /omit the task id/],
    [{ fork: point, more: { contextId: origin.contextId } }, -32602, /contextId that is not in use/],
  ];
  for (const [sent, code, message] of refusals) {
    const { error } = await send(rig, 'x', sent);
    assert.equal(error?.code, code, JSON.stringify(error));
    assert.match(error.message, message);
  }
  const after = [(await rig.log.inputs.extent()).lastSeq, await rig.log.messageIds.revision(), await rig.log.contexts.revision()];
  assert.deepEqual(after, [lastSeq, claims, contexts]);
});

test('a retried fork is the same task on any replica', async t => {
  const rig = await openAnswering(t);
  const { task: origin } = await send(rig, '2+2');
  const more = { messageId: 'again', contextId: 'new' };
  const fork = { taskId: origin.id, cursor: '1.1' };
  const first = await send(rig, 'x', { fork, more });
  const second = await send(await rig.another(), 'x', { fork, more });
  assert.deepEqual(second.task, first.task);
  const other = await send(rig, 'y', { fork, more: { contextId: 'new' } });
  assert.equal(other.error?.code, -32602);
});
