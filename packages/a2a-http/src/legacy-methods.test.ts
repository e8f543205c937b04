import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold } from '@hopline/a2a';
import {
  call,
  type Frame,
  type Method,
  open,
  openRig,
  type Rig,
  type RpcAnswer,
  type StreamReader,
  sendParams,
  shape,
  userMessage,
} from './http-server.test-kit.ts';
import { legacy, legacyParams, stream } from './legacy.test-kit.ts';

/** `tasks/get`, `tasks/cancel` and a stream of `tasks/resubscribe`, each as 0.3, legacy or neither. */
async function formsOf(rig: Rig, id: string, version?: string): Promise<string[]> {
  const headers: Record<string, string> = version === undefined ? {} : { 'a2a-version': version };
  const form = (answer: RpcAnswer) => (answer.result.kind ? '0.3' : answer.result.sessionId ? 'legacy' : 'neither');
  const shared = (method: Method) => call(rig, method, { id }, { ...legacy, headers });
  const [frame] = await (await open(rig, 'subscribe', { id }, { ...legacy, headers, query: '?cursor=0.0' })).take(1);
  return [form(await shared('get')), form(frame!.rpc), form(await shared('cancel'))];
}

test('the version selects the dialect of shared methods; without one, the dialect that created the task does [C-6]', async t => {
  const rig = await openRig(t);
  const created = async (id: string | undefined) => {
    const begun = Promise.withResolvers<string>();
    rig.relay.onClient = taskId => begun.resolve(taskId);
    const params = id === undefined ? sendParams(userMessage('x'), '0.3') : legacyParams(id, 'x');
    await (await open(rig, 'stream', params, { dialect: id === undefined ? '0.3' : 'legacy' })).take(1);
    return begun.promise;
  };
  const all = (name: string) => [name, name, name];
  assert.deepEqual(await formsOf(rig, await created('t1')), all('legacy'));
  assert.deepEqual(await formsOf(rig, await created('t2'), '0.3'), all('0.3'));
  assert.deepEqual(await formsOf(rig, await created('t3'), '0.1'), all('legacy'));
  assert.deepEqual(await formsOf(rig, await created(undefined)), all('0.3'));
  assert.deepEqual(await formsOf(rig, await created(undefined), '0.1'), all('legacy'));
});

test('clients cannot mark a task as legacy [S1-15]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const params = { ...sendParams(userMessage('x'), '0.3'), metadata: { 'hopline.dialect': 'legacy' } };
  const { result } = await call(rig, 'send', params, { dialect: '0.3' });
  assert.equal((await call(rig, 'get', { id: result.id }, { dialect: '0.3' })).result.kind, 'task');
});

async function cutAfter(count: number, reader: StreamReader): Promise<Frame[]> {
  const frames = await reader.take(count);
  await reader.cut();
  return frames;
}

test('tasks/resubscribe: interrupted after any frame, the rest follows with the same indexes, no gap, no overlap [S3-31]', async t => {
  const rig = await openRig(t);
  const other = await rig.another();
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    for (const lane of ['a', 'b', 'a', 'b']) {
      if (rig.relay.aggregate(taskId).lanes[lane] === undefined) await rig.relay.openArtifact(taskId, lane, lane);
      await rig.relay.text(taskId, lane, `${lane}.`);
    }
    await rig.relay.end(taskId);
  };
  const whole = await stream(rig, legacyParams('t', 'x'));
  for (let count = 1; count < whole.length; count += 1) {
    const seen = whole.slice(0, count);
    const headers = { 'last-event-id': seen.at(-1)!.id! };
    const rest = await (await open(other, 'subscribe', { id: 't' }, { ...legacy, headers })).rest();
    assert.deepEqual(
      [...seen, ...rest].map(frame => frame.rpc.result),
      whole.map(frame => frame.rpc.result),
    );
  }
  const ended = await call(rig, 'subscribe', { id: 't' }, legacy);
  assert.equal(ended.error?.code, -32004, 'S4-37 without a cursor, an ended task is refused');
});

test('without a cursor the task comes first: each artifact whole, then the state, then later events [S3-31]', async t => {
  const rig = await openRig(t);
  const go = Promise.withResolvers<void>();
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.openArtifact(taskId, 'a', 'one');
    await rig.relay.openArtifact(taskId, 'b', 'two');
    for (const lane of ['a', 'b', 'a']) await rig.relay.text(taskId, lane, lane);
    await go.promise;
    await rig.relay.text(taskId, 'b', '!');
    await rig.relay.end(taskId);
  };
  await cutAfter(5, await open(rig, 'stream', legacyParams('t', 'x'), legacy));
  const reader = await open(rig, 'subscribe', { id: 't' }, legacy);
  const head = await reader.take(3);
  go.resolve();
  const frames = [...head, ...(await reader.rest())];
  assert.deepEqual(shape(frames), ['=aa', '=b', 'working', '+!', '+.', '+.', 'completed']);
  assert.deepEqual(
    frames.map(frame => frame.rpc.result.artifact?.index),
    [0, 1, undefined, 1, 0, 1, undefined],
  );
  assert.deepEqual(
    frames.slice(0, 3).map(frame => frame.id === undefined),
    [true, true, false],
    'a place is given once the snapshot is whole',
  );
  const fold = new Fold().resume();
  for (const { decoded } of frames) if ('event' in decoded) fold.add(decoded.event);
  assert.deepEqual([fold.textOf('one'), fold.textOf('two'), fold.ended], ['aa', 'b!', true]);
});

test('tasks/cancel of a submitted, working or waiting task succeeds; afterwards it is not cancelable [S3-26 S3-27 S3-28 S4-12 S4-35]', async t => {
  const rig = await openRig(t);
  const states: Record<string, () => Promise<void>> = {
    submitted: async () => {},
    working: () => rig.relay.publish('working', { kind: 'status', state: 'TASK_STATE_WORKING' }),
    'input-required': async () => {
      await rig.relay.publish('input-required', { kind: 'status', state: 'TASK_STATE_WORKING' });
      await rig.relay.end('input-required', 'INPUT_REQUIRED');
    },
  };
  for (const [id, reach] of Object.entries(states)) {
    await cutAfter(1, await open(rig, 'stream', legacyParams(id, 'x'), legacy));
    await reach();
    assert.equal((await call(rig, 'get', { id }, legacy)).result.status.state, id);
    const { result } = await call(rig, 'cancel', { id }, legacy);
    assert.deepEqual([result.id, result.status.state], [id, 'canceled']);
    const { error } = await call(rig, 'cancel', { id }, legacy);
    assert.deepEqual([error?.code, error?.data], [-32002, { taskId: id, reason: 'TASK_NOT_CANCELABLE', retryable: false }]);
  }
});
