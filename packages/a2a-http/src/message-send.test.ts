import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { LIMITS } from '@hopline/a2a-server';
import { CLUSTER_DEPTH_KEY, CLUSTER_DEPTH_MAX } from '@hopline/events';
import { LogConflict, LogUnavailable } from '@hopline/log';
import { until } from '../../../test/kit/until.ts';
import { call, open, openRig, post, sendParams, shape, userMessage } from './http-server.test-kit.ts';

/** Messages that one task takes, as `packages/task` bounds them. */
const TURNS_MAX = 256;

test('a blocking send returns the ended task and its artifacts [S1-2 S3-4]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['Here', ' is']);
  const v10 = await call(rig, 'send', sendParams(userMessage('x')), { id: 'abc' });
  assert.equal(v10.id, 'abc');
  assert.deepEqual(Object.keys(v10.result), ['task'], 'S1-11 exactly one of task and message');
  assert.equal(v10.result.task.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(v10.result.task.artifacts[0].parts, [{ text: 'Here is' }]);
  const v03 = await call(rig, 'send', sendParams(userMessage('x'), '0.3'), { dialect: '0.3' });
  assert.equal(v03.result.kind, 'task');
  assert.equal(v03.result.status.state, 'completed');
  assert.deepEqual(v03.result.artifacts[0].parts, [{ kind: 'text', text: 'Here is' }]);
});

test('a send returns the direct message of an agent, and so does a retry; a stream has a task [S1-11]', async t => {
  const rig = await openRig(t);
  const parts = [{ text: '42' }];
  const message: Message = { messageId: 'a1', role: 'ROLE_AGENT', parts };
  rig.relay.onClient = taskId =>
    rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_COMPLETED', message, direct: true });
  const asked = userMessage('x', { contextId: 'c1' });
  for (let tries = 1; tries <= 2; tries += 1) {
    const { result } = await call(rig, 'send', sendParams(asked));
    assert.deepEqual(result, { message: { ...message, contextId: 'c1' } });
  }
  const v03 = await call(rig, 'send', sendParams(userMessage('x', { contextId: 'c2' }), '0.3'), { dialect: '0.3' });
  assert.deepEqual([v03.result.kind, v03.result.parts], ['message', [{ kind: 'text', text: '42' }]]);
  const streamed = await (await open(rig, 'stream', sendParams(userMessage('x')))).rest();
  assert.deepEqual(shape(streamed), ['task submitted', 'working', 'completed']);
});

test('a send and a stream leave the same facts [S1-1]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['a', 'b']);
  const { result } = await call(rig, 'send', sendParams(userMessage('x')));
  const sent = await (await open(rig, 'subscribe', { id: result.task.id }, { query: '?cursor=0.0' })).rest();
  const streamed = await (await open(rig, 'stream', sendParams(userMessage('x')))).rest();
  assert.deepEqual(shape(sent), shape(streamed));
});

test('a non-blocking send returns a working task, in every dialect that has the flag [S1-3]', async t => {
  const rig = await openRig(t, { limits: { workingWaitMsMax: 60_000 } });
  rig.relay.onClient = taskId => rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  for (const dialect of ['1.0', '0.3'] as const) {
    const { result } = await call(rig, 'send', sendParams(userMessage('x'), dialect, { blocking: false }), { dialect });
    assert.match((result.task ?? result).status.state, /working/i, dialect);
  }
});

test('a non-blocking send answers at once even if no relay takes the task; the task later runs without clients [S1-3 S3-33]', async t => {
  const rig = await openRig(t, { limits: { workingWaitMsMax: 30 } });
  const go = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  rig.relay.onClient = async taskId => {
    await go.promise;
    await rig.relay.answer(taskId, ['later']);
    done.resolve();
  };
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '0.3', { blocking: false }), { dialect: '0.3' });
  assert.equal(result.status.state, 'submitted');
  go.resolve();
  await done.promise;
  const got = await call(rig, 'get', { id: result.id }, { dialect: '0.3' });
  assert.equal(got.result.status.state, 'completed');
});

test('a blocking send ends at input-required, and the next message continues the task', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async (taskId, aggregate) => {
    if (aggregate.turn === 2) return rig.relay.answer(taskId, ['ok']);
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
  const first = await call(rig, 'send', sendParams(userMessage('one')));
  assert.equal(first.result.task.status.state, 'TASK_STATE_INPUT_REQUIRED');
  assert.equal(first.result.task.status.message.parts[0].text, 'Which one?');
  const second = await call(rig, 'send', sendParams(userMessage('two', { taskId: first.result.task.id })));
  assert.equal(second.result.task.id, first.result.task.id);
  assert.equal(second.result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('a message with only white space is refused with -32602 in every dialect, even as a reply, and nothing is stored [S0-43 S4-32]', async t => {
  const rig = await openRig(t);
  let received = 0;
  rig.relay.onClient = async (taskId, { turn }) => {
    received += 1;
    if (turn === 2) return rig.relay.answer(taskId, ['ok']);
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
  const blank = { messageId: 'blank', contextId: 'c1', parts: [{ text: ' \n' }, { text: '\u00a0\t' }] };
  for (const dialect of ['1.0', '0.3'] as const) {
    for (const method of ['send', 'stream'] as const) {
      const { error } = await call(rig, method, sendParams(userMessage('x', blank), dialect), { dialect });
      assert.equal(error?.code, -32602, `${dialect} ${method}`);
      assert.match(error.message, /white space/);
    }
  }
  const legacyTask = { id: 'blank', message: { role: 'user', parts: [{ type: 'text', text: '  ' }] } };
  assert.equal((await call(rig, 'send', legacyTask, { dialect: 'legacy' })).error?.code, -32602);
  assert.equal(received, 0);

  const asked = await call(rig, 'send', sendParams(userMessage('one', { ...blank, parts: [{ text: 'one' }] })));
  const { id: taskId, contextId } = asked.result.task;
  const reply = userMessage('', { messageId: 'reply', taskId, contextId, parts: [{ text: '\r\n' }] });
  assert.equal((await call(rig, 'send', sendParams(reply))).error?.code, -32602);
  assert.equal((await call(rig, 'get', { id: taskId })).result.status.state, 'TASK_STATE_INPUT_REQUIRED');
  const answered = await call(rig, 'send', sendParams({ ...reply, parts: [{ text: ' ' }, { data: { city: 'Rome' } }] }));
  assert.equal(answered.result.task.status.state, 'TASK_STATE_COMPLETED', 'white space beside data is a message');
  assert.equal(received, 2);
});

test('a message with empty text is accepted: its agent may ask for what it needs [S1-7]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['hello']);
  const { result } = await call(rig, 'send', sendParams(userMessage('')));
  assert.equal(result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('historyLength returns all, none, or the newest messages', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async (taskId, aggregate) => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId, aggregate.turn === 2 ? 'COMPLETED' : 'INPUT_REQUIRED');
  };
  const { result } = await call(rig, 'send', sendParams(userMessage('one')));
  const { id } = result.task;
  const limited = await call(rig, 'send', sendParams(userMessage('two', { taskId: id }), '1.0', { historyLength: 1 }));
  assert.deepEqual(
    limited.result.task.history.map((message: { parts: { text: string }[] }) => message.parts[0]?.text),
    ['two'],
  );
  assert.equal((await call(rig, 'get', { id })).result.history.length, 3);
  assert.equal('history' in (await call(rig, 'get', { id, historyLength: 0 })).result, false);
  assert.equal((await call(rig, 'get', { id, historyLength: 2 })).result.history.length, 2);
  assert.equal((await call(rig, 'get', { id, historyLength: 1000 })).result.history.length, 3);
});

test('a message id starts one task in its context, on any process and in any dialect, and another task in another context [S1-9 S1-10]', async t => {
  const rig = await openRig(t);
  const other = await rig.another();
  const seen: string[] = [];
  rig.relay.onClient = async taskId => {
    seen.push(taskId);
    await rig.relay.answer(taskId, ['once']);
  };
  const message = userMessage('x', { contextId: 'c1', messageId: 'm1' });
  const answers = await Promise.all([
    call(rig, 'send', sendParams(message)),
    call(other, 'send', sendParams(message)),
    call(rig, 'send', sendParams(message, '0.3'), { dialect: '0.3' }),
    open(other, 'stream', sendParams(message)).then(stream => stream.rest()),
    call(rig, 'send', sendParams(message, '1.0', { blocking: false })),
  ]);
  const [a, b, c, frames, e] = answers;
  const taskId = a.result.task.id;
  assert.deepEqual([b.result.task.id, c.result.id, e.result.task.id], [taskId, taskId, taskId]);
  assert.deepEqual(
    shape(frames),
    ['task submitted', 'working', '=once', '+.', 'completed'],
    'a retried stream has it all, from the beginning',
  );
  const late = await open(other, 'stream', sendParams(message));
  assert.deepEqual(shape(await late.rest()), shape(frames));
  assert.deepEqual(seen, [taskId]);
  const elsewhere = await call(rig, 'send', sendParams({ ...message, contextId: 'c2' }));
  assert.notEqual(elsewhere.result.task.id, taskId);
  const changed = await call(rig, 'send', sendParams({ ...message, parts: [{ text: 'y' }] }));
  assert.equal(changed.error?.code, -32602);
  assert.doesNotMatch(changed.error!.message, /m1|c1/);
  assert.equal(seen.length, 2);
});

test('a retry with the members of its data in another order is the same message', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const message = userMessage('x', { contextId: 'c', metadata: { a: 1, b: [{ c: 2, d: 3 }] } });
  const first = await call(rig, 'send', sendParams(message));
  const again = await call(rig, 'send', sendParams({ ...message, metadata: { b: [{ d: 3, c: 2 }], a: 1 } }));
  assert.equal(again.result?.task.id, first.result.task.id);
  const other = await call(rig, 'send', sendParams({ ...message, metadata: { a: 1, b: [{ c: 2, d: 4 }] } }));
  assert.equal(other.error?.code, -32602);
});

test('a message whose claimed task has ended without it is refused, and nothing is stored', async t => {
  const rig = await openRig(t, { limits: { ...LIMITS, firstFactMsMax: 2_000 } });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const { id: taskId, contextId } = (await call(rig, 'send', sendParams(userMessage('x')))).result.task;
  const append = rig.log.inputs.append.bind(rig.log.inputs);
  rig.log.inputs.append = async () => {
    throw new LogUnavailable('gone');
  };
  const message = userMessage('y', { contextId });
  assert.equal((await call(rig, 'send', sendParams({ ...message, taskId }))).error?.data[0].reason, 'UNAVAILABLE');
  rig.log.inputs.append = append;
  await rig.relay.end(taskId, 'FAILED');
  const { lastSeq } = await rig.log.inputs.extent();
  const refused = await call(rig, 'send', sendParams(message));
  assert.deepEqual(
    [refused.error?.code, refused.error?.message],
    [-32004, 'This operation is not supported: the task has ended; send the message without a task id to start another task'],
  );
  assert.equal((await rig.log.inputs.extent()).lastSeq, lastSeq);
});

test('a claim that conflicts with an expired one is made again, so that a retry finds its task', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const { messageIds } = rig.log;
  const create = messageIds.create.bind(messageIds);
  messageIds.create = async () => {
    messageIds.create = create;
    throw new LogConflict('another entry');
  };
  const params = sendParams(userMessage('x', { contextId: 'c' }));
  const first = await call(rig, 'send', params);
  const again = await call(await rig.another(), 'send', params);
  assert.equal(again.result?.task.id, first.result.task.id);
});

test('a claim without a stored message is completed by the retry [S1-9]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  rig.log.faults.refusals = 1;
  const message = userMessage('x', { contextId: 'c', messageId: 'm' });
  const refused = await post(rig, 'send', sendParams(message));
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  const { result } = await call(await rig.another(), 'send', sendParams(message));
  assert.equal(result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('a retried further message is added once; its id with other content is refused [S1-9]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async (taskId, aggregate) => {
    if (aggregate.turn === 2) return rig.relay.answer(taskId, ['ok']);
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
  const { result } = await call(rig, 'send', sendParams(userMessage('one')));
  const taskId = result.task.id;
  const next = userMessage('two', { taskId });
  const done = await call(rig, 'send', sendParams(next));
  const again = await call(rig, 'send', sendParams(next));
  assert.deepEqual(again.result, done.result);
  assert.equal(again.result.task.history.length, 3);
  const stream = await open(rig, 'stream', sendParams(next));
  assert.deepEqual(shape(await stream.rest()), ['task working', '=ok', '+.', 'completed']);
  assert.equal((await call(rig, 'send', sendParams({ ...next, parts: [{ text: 'three' }] }))).error?.code, -32602);
  assert.equal(
    (await call(rig, 'send', sendParams(userMessage('four', { taskId })))).error?.code,
    -32004,
    'S4-37 a message to an ended task',
  );
});

test('a task takes TURNS_MAX messages; one more is refused, and stores nothing', async t => {
  const rig = await openRig(t, { limits: { firstFactMsMax: 2_000 } });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const { result } = await call(rig, 'send', sendParams(userMessage('1')));
  const taskId: string = result.task.id;
  const next = (turn: number) => call(rig, 'send', sendParams(userMessage(`${turn}`, { taskId })));
  for (let turn = 2; turn <= TURNS_MAX; turn += 1) assert.equal((await next(turn)).error, undefined, `${turn}`);
  const { lastSeq } = await rig.log.inputs.extent();
  const refused = await next(TURNS_MAX + 1);
  assert.deepEqual([refused.error?.code, refused.error?.data[0].reason], [-32004, 'UNSUPPORTED_OPERATION']);
  assert.equal((await rig.log.inputs.extent()).lastSeq, lastSeq);
});

test('a stored message states whether it begins a task or continues one', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const { id: taskId } = (await call(rig, 'send', sendParams(userMessage('x')))).result.task;
  await call(rig, 'send', sendParams(userMessage('y', { taskId })));
  const stated: unknown[] = [];
  for await (const { record } of rig.log.inputs.read(taskId))
    if (record.from === 'client' && record.input.kind === 'message') stated.push([record.input.creates, record.input.continues]);
  assert.deepEqual(stated, [
    [true, undefined],
    [undefined, true],
  ]);
});

test('a further message that another replica stores at the same time is added once, and both clients get the end of its turn [S1-9]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = (taskId, { turn }) =>
    turn === 1 ? rig.relay.end(taskId, 'INPUT_REQUIRED') : rig.relay.answer(taskId, ['ok']);
  const taskId: string = (await call(rig, 'send', sendParams(userMessage('x')))).result.task.id;
  const other = await rig.another({ limits: { ...LIMITS, firstFactMsMax: 2_000 } });
  const params = sendParams(userMessage('y', { taskId }));
  const { messageIds } = other.log;
  const create = messageIds.create.bind(messageIds);
  let first: Awaited<ReturnType<typeof call>> | undefined;
  messageIds.create = async (...entry) => {
    first = await call(rig, 'send', params);
    await call(other, 'get', { id: taskId });
    return create(...entry);
  };
  const second = await call(other, 'send', params);
  assert.equal(second.result?.task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(second.error));
  assert.deepEqual(second.result, first?.result);
  assert.equal(second.result.task.history.length, 3);
});

/** A task that has asked, and the turns that its relay has begun. The answer of a later turn waits for `end`. */
async function askedTask(t: TestContext) {
  const rig = await openRig(t);
  const ended = Promise.withResolvers<void>();
  const turns: number[] = [];
  rig.relay.onClient = async (taskId, { turn }) => {
    turns.push(turn);
    if (turn === 1) return rig.relay.end(taskId, 'INPUT_REQUIRED');
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await ended.promise;
    if (rig.relay.aggregate(taskId).turn === turn) await rig.relay.answer(taskId, [`answer ${turn}`]);
  };
  const taskId: string = (await call(rig, 'send', sendParams(userMessage('x')))).result.task.id;
  return { rig, taskId, turns, end: ended.resolve };
}

const answerTo = (taskId: string, text: string) => sendParams({ ...userMessage(text, { taskId }), messageId: randomUUID() });
const textsOf = ({ result }: Awaited<ReturnType<typeof call>>) =>
  result.task.history.map(({ parts }: { parts: { text: string }[] }) => parts[0]?.text);

test('an answer that is sent twice at once, on two replicas, begins one turn, and both clients get its end', async t => {
  const { rig, taskId, turns, end } = await askedTask(t);
  const other = await rig.another();
  await call(other, 'get', { id: taskId });
  rig.relay.running = false;
  const { lastSeq } = await rig.log.inputs.extent();
  const both = [call(rig, 'send', answerTo(taskId, 'blue')), call(other, 'send', answerTo(taskId, 'blue'))];
  const stream = await open(rig, 'stream', answerTo(taskId, 'blue'));
  await until(async () => (await rig.log.inputs.extent()).lastSeq >= lastSeq + 3);
  rig.relay.resume();
  await until(() => turns.length === 2);
  end();
  for (const one of await Promise.all(both)) {
    assert.equal(one.result?.task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(one.error));
    assert.deepEqual(textsOf(one), ['x', 'Which one?', 'blue']);
  }
  assert.equal(shape(await stream.rest()).at(-1), 'completed');
  assert.deepEqual(turns, [1, 2]);
});

test('an answer that is sent again while its turn runs joins the turn; another message begins the next one', async t => {
  const { rig, taskId, turns, end } = await askedTask(t);
  const first = call(rig, 'send', answerTo(taskId, 'blue'));
  await until(() => turns.length === 2);
  const stream = await open(rig, 'stream', answerTo(taskId, 'blue'));
  const again = call(rig, 'send', answerTo(taskId, 'blue'));
  assert.equal((await stream.next())?.rpc.result.task.status.state, 'TASK_STATE_WORKING');
  assert.deepEqual(turns, [1, 2]);
  const third = call(rig, 'send', answerTo(taskId, 'red'));
  await until(() => turns.length === 3);
  end();
  for (const one of await Promise.all([first, again, third]))
    assert.deepEqual(textsOf(one), ['x', 'Which one?', 'blue', 'red'], JSON.stringify(one.error));
});

test('two different answers sent at once both become messages of the task', async t => {
  const { rig, taskId, turns, end } = await askedTask(t);
  rig.relay.running = false;
  const { lastSeq } = await rig.log.inputs.extent();
  const both = [call(rig, 'send', answerTo(taskId, 'blue')), call(rig, 'send', answerTo(taskId, 'red'))];
  await until(async () => (await rig.log.inputs.extent()).lastSeq >= lastSeq + 2);
  rig.relay.resume();
  await until(() => turns.length === 3);
  end();
  for (const one of await Promise.all(both)) assert.equal(textsOf(one).length, 4, JSON.stringify(one.error));
});

test('a message to a task that ends before it is processed is refused, in a send and in a stream', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const begin = async (): Promise<string> => (await call(rig, 'send', sendParams(userMessage('x')))).result.task.id;
  const [sent, streamed] = [await begin(), await begin()];
  rig.relay.running = false;
  const { lastSeq } = await rig.log.inputs.extent();
  const answer = call(rig, 'send', sendParams(userMessage('y', { taskId: sent })));
  const stream = await open(rig, 'stream', sendParams(userMessage('y', { taskId: streamed })));
  await until(async () => (await rig.log.inputs.extent()).lastSeq >= lastSeq + 2);
  for (const taskId of [sent, streamed]) await rig.relay.end(taskId, 'FAILED');
  rig.relay.resume();
  assert.equal((await answer).error?.code, -32004);
  const [frame, ...more] = await stream.rest();
  assert.deepEqual([frame?.rpc.error?.code, more.length], [-32004, 0]);
});

test('a message to a task that ends while its id is claimed is refused at once, in a send and in a stream', async t => {
  const rig = await openRig(t, { limits: { ...LIMITS, firstFactMsMax: 2_000 } });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const { messageIds } = rig.log;
  const create = messageIds.create.bind(messageIds);
  for (const method of ['send', 'stream'] as const) {
    const taskId: string = (await call(rig, 'send', sendParams(userMessage('x')))).result.task.id;
    messageIds.create = async (...entry) => {
      await rig.relay.end(taskId, 'FAILED');
      // The server has folded the end of the task once it has answered this.
      await call(rig, 'get', { id: taskId });
      return create(...entry);
    };
    const params = sendParams(userMessage('y', { taskId }));
    const refused =
      method === 'send' ? await call(rig, 'send', params) : (await (await open(rig, 'stream', params)).rest())[0]?.rpc;
    assert.deepEqual([refused?.error?.code, refused?.error?.data[0].metadata.retryable], [-32004, 'false'], method);
    messageIds.create = create;
  }
});

test('an unknown task, or one of another context, is refused', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const { result } = await call(rig, 'send', sendParams(userMessage('x')));
  const code = async (more: { taskId: string; contextId?: string }) =>
    (await call(rig, 'send', sendParams(userMessage('y', more)))).error?.code;
  assert.equal(await code({ taskId: 'unknown' }), -32001);
  assert.equal(await code({ taskId: 'a.b.>' }), -32001);
  assert.equal(await code({ taskId: result.task.id, contextId: 'other' }), -32602);
});

test('reserved metadata is removed from client input, everywhere [S1-15]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const reserved = { 'hopline.role': 'x', 'Hopline.agent': 'y', own: 1 };
  const message = userMessage('x', {
    metadata: reserved,
    parts: [
      { text: 'a', metadata: reserved },
      { text: 'b', metadata: { 'hopline.x': 1 } },
    ],
  });
  const { result } = await call(rig, 'send', { message, metadata: reserved });
  const [echoed] = result.task.history;
  const { id: taskId, contextId } = result.task;
  const parts = [{ text: 'a', metadata: { own: 1 } }, { text: 'b' }];
  assert.deepEqual(echoed, { ...message, metadata: { own: 1 }, parts, taskId, contextId });
  assert.deepEqual(result.task.metadata, { own: 1 });
});

test('the number of clusters that a request has passed is kept, within its bound', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const [sent, kept] of [
    [1, 1],
    [1e9, CLUSTER_DEPTH_MAX],
    [0, undefined],
    [-1, undefined],
    [1.5, undefined],
    ['2', undefined],
  ]) {
    const { result } = await call(rig, 'send', {
      ...sendParams(userMessage('x')),
      metadata: { [CLUSTER_DEPTH_KEY]: sent, own: 1 },
    });
    assert.deepEqual(result.task.metadata, { own: 1, ...(kept !== undefined && { [CLUSTER_DEPTH_KEY]: kept }) });
  }
});

test('reserved metadata of a cancel is removed, and its other metadata is kept [S1-15]', async t => {
  const rig = await openRig(t);
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  const { id } = result.task;
  const metadata = { reason: 'mine', 'hopline.agent': 'other', 'HOPLINE.path': 'x' };
  assert.equal((await call(rig, 'cancel', { id, metadata })).result?.status.state, 'TASK_STATE_CANCELED');
  const canceled = [];
  for await (const { record } of rig.log.inputs.read(id))
    if (record.from === 'client' && record.input.kind === 'cancel') canceled.push(record.input.metadata);
  assert.deepEqual(canceled, [{ reason: 'mine' }]);
});

test('cancel ends the task; an ended task is not cancelable [S3-26 S3-27 S4-35]', async t => {
  const rig = await openRig(t);
  for (const dialect of ['1.0', '0.3'] as const) {
    const begun = Promise.withResolvers<string>();
    rig.relay.onClient = (taskId, aggregate) => {
      if (aggregate.state === 'TASK_STATE_SUBMITTED') begun.resolve(taskId);
    };
    const stream = await open(rig, 'stream', sendParams(userMessage('x')));
    const id = await begun.promise;
    const canceled = await call(rig, 'cancel', { id }, { dialect });
    assert.match(canceled.result.status.state, /canceled/i);
    assert.deepEqual(shape(await stream.rest()), ['task submitted', 'canceled']);
    assert.equal((await call(rig, 'cancel', { id }, { dialect })).error?.code, -32002);
    assert.equal((await call(rig, 'cancel', { id: 'unknown' }, { dialect })).error?.code, -32001);
  }
});

test('a cancel of a task that ends first in another way is refused [S3-27]', async t => {
  const rig = await openRig(t);
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  const { id } = result.task;
  rig.relay.running = false;
  const { lastSeq } = await rig.log.inputs.extent();
  const canceled = call(rig, 'cancel', { id });
  await until(async () => (await rig.log.inputs.extent()).lastSeq > lastSeq);
  await rig.relay.end(id, 'FAILED');
  assert.equal((await canceled).error?.code, -32002);
});

test('a cancel that no relay processes returns the unchanged task in time', async t => {
  const rig = await openRig(t, { limits: { cancelWaitMsMax: 30 } });
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  rig.relay.running = false;
  const { result: task } = await call(rig, 'cancel', { id: result.task.id });
  assert.equal(task.status.state, 'TASK_STATE_SUBMITTED');
});

test('a blocking send that takes too long returns the task as it is', async t => {
  const rig = await openRig(t, { limits: { blockingWaitMsMax: 30 } });
  const { result } = await call(rig, 'send', sendParams(userMessage('x')));
  assert.equal(result.task.status.state, 'TASK_STATE_SUBMITTED');
});

test('push configurations are refused as the card declares [S4-36]', async t => {
  const rig = await openRig(t);
  const params = {
    ...sendParams(userMessage('x')),
    configuration: { taskPushNotificationConfig: { url: 'http://127.0.0.1/secret' } },
  };
  const { error } = await call(rig, 'send', params);
  assert.equal(error?.code, -32003);
  assert.doesNotMatch(JSON.stringify(error), /secret/);
});

test('a message is refused with 503 when the work queue has no room, and nothing is stored; a later retry is accepted', async t => {
  const rig = await openRig(t, { memory: { roleItemsMax: 1 } });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['done']);
  const message = { messageId: 'waiting', role: 'ROLE_USER' as const, parts: [{ text: 'x' }] };
  await rig.log.work.request(
    'supervisor',
    { v: 1, taskId: 'waiting', contextId: 'c', turn: 1, profile: 'caipe', message },
    { id: 'waiting' },
  );
  const params = sendParams(userMessage('x', { messageId: 'm1' }));
  const refused = await post(rig, 'send', params);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  assert.equal(await rig.log.tasks.revision(), 0, 'no task is in the index');
  const stop = new AbortController();
  await rig.log.work.take('supervisor', { slots: 1, signal: stop.signal }, async () => stop.abort());
  const { result } = await call(rig, 'send', params);
  assert.equal(result.task.status.state, 'TASK_STATE_COMPLETED');
});
