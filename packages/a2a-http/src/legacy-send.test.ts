import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DIALECTS, type JsonObject } from '@hopline/a2a';
import { call, open, openRig, type Rig, type RpcAnswer, shape } from './http-server.test-kit.ts';
import { legacy, legacyParams, send, stream } from './legacy.test-kit.ts';

/** Ends the first turn with input-required and the next ones with text. */
function requireInputFirst(rig: Rig): void {
  rig.relay.onClient = async (taskId, { turn }) => {
    if (turn > 1) return rig.relay.answer(taskId, ['done']);
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
}

test('a stream has states and artifacts both for clients that read the result and for those that read the bare frame [S3-14 S3-15 S4-15 S4-16 S4-18 S4-20]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.openArtifact(taskId, 'a', 'one');
    await rig.relay.openArtifact(taskId, 'b', 'two');
    for (const lane of ['a', 'b', 'a']) await rig.relay.text(taskId, lane, lane);
    await rig.relay.end(taskId);
  };
  const frames = await stream(rig, legacyParams('task-1', 'x', { sessionId: 's-1' }), { id: 'req-1' });
  assert.deepEqual(shape(frames), ['submitted', 'working', '=a', '=b', '+a', '+.', '+.', 'completed']);
  for (const frame of frames) {
    const { jsonrpc, id, result, ...bare } = JSON.parse(frame.data);
    assert.deepEqual([jsonrpc, id, result.id, result.sessionId], ['2.0', 'req-1', 'task-1', 's-1']);
    assert.equal(bare.taskId, 'task-1');
    assert.equal(bare.type, 'status' in bare ? 'taskStatusUpdate' : 'taskArtifactUpdate');
    assert.deepEqual([bare.status, bare.artifact], [result.status, result.artifact]);
  }
  const results = frames.map(frame => frame.rpc.result);
  assert.deepEqual(
    results.flatMap(({ artifact }) => (artifact ? [[artifact.name, artifact.index, artifact.append, artifact.lastChunk]] : [])),
    [
      ['one', 0, false, false],
      ['two', 1, false, false],
      ['one', 0, true, false],
      ['one', 0, true, true],
      ['two', 1, true, true],
    ],
  );
  assert.deepEqual(
    results.filter(result => result.status).map(result => result.final),
    [false, false, true],
  );
  const { result: task } = await call(rig, 'get', { id: 'task-1' }, legacy);
  assert.deepEqual(
    task.artifacts.map((artifact: JsonObject) => [artifact.name, artifact.index]),
    [
      ['one', 0],
      ['two', 1],
    ],
  );
});

test('tasks/send waits for the end of the task that the client named, and returns its metadata [S3-4 S4-8 S4-9 C-9]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['Here', ' is']);
  const metadata = { correlationId: 'order-workflow-42', requestedBy: 'procurement-agent-v2' };
  const { result, id } = await send(rig, legacyParams('task-7f3a9b2c', 'x', { metadata }), { id: 'req-001' });
  assert.deepEqual([id, result.id, result.status.state], ['req-001', 'task-7f3a9b2c', 'completed']);
  assert.deepEqual(result.artifacts[0].parts, [{ type: 'text', text: 'Here is' }]);
  const { processingTimeMs, ...own } = result.metadata;
  assert.deepEqual(own, metadata);
  assert(Number.isInteger(processingTimeMs) && processingTimeMs >= 0 && processingTimeMs < 10_000);
  assert.deepEqual((await call(rig, 'get', { id: result.id }, legacy)).result, result);
});

test('an invalid task id is refused, and one of another role is not found [C-9]', async t => {
  const rig = await openRig(t);
  const other = await rig.another({ role: 'agent.echo' });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const id of ['a.b', '*', 'a b', 'ü', 'x'.repeat(129)]) {
    const { error } = await send(rig, legacyParams(id, 'x'));
    assert.deepEqual([error?.code, error?.message.includes(id)], [-32602, false]);
  }
  assert.equal((await send(rig, legacyParams('x'.repeat(128), 'x'))).result.status.state, 'completed');
  await send(other, legacyParams('theirs', 'x'));
  assert.equal((await send(rig, legacyParams('theirs', 'x'))).error?.code, -32001);
  assert.equal(rig.relay.aggregate('theirs').turn, 1);
});

test('input-required ends the send and the stream; a message to the same id continues [S3-11 S4-26 S4-27 S4-28]', async t => {
  const rig = await openRig(t);
  requireInputFirst(rig);
  const first = await send(rig, legacyParams('t1', 'one'));
  assert.equal(first.result.status.state, 'input-required');
  assert.deepEqual(first.result.status.message.parts, [{ type: 'text', text: 'Which one?' }]);
  const second = await send(rig, legacyParams('t1', 'one'));
  assert.equal(second.result.status.state, 'completed', 'the same words are an answer here, not a retry');
  const texts = second.result.history.map((message: { parts: { text: string }[] }) => message.parts[0]?.text);
  assert.deepEqual(texts, ['one', 'Which one?', 'one']);
  const frames = await stream(rig, legacyParams('t2', 'one'));
  assert.deepEqual(shape(frames), ['submitted', 'working', 'input_required']);
  assert.equal(frames.at(-1)?.rpc.result.final, true);
  assert.deepEqual(shape(await stream(rig, legacyParams('t2', 'two'))), ['working', '=done', '+.', 'completed']);
  assert.equal((await send(rig, legacyParams('t2', 'three'))).error?.code, -32004, 'S4-37');
  assert.equal((await send(rig, legacyParams('t2', 'three', { sessionId: 'other' }))).error?.code, -32602);
});

test('a session is a context: its tasks share it, and it is returned under both names [S3-17 C-17]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const id of ['task-1', 'task-2']) {
    const { result } = await send(rig, legacyParams(id, 'x', { sessionId: 'session-123' }));
    assert.equal(result.sessionId, 'session-123');
    assert.equal((await call(rig, 'get', { id })).result.contextId, 'session-123');
  }
  const { result } = await send(rig, legacyParams('task-3', 'x'));
  assert.match(result.sessionId, /^[0-9a-f-]{36}$/);
});

test('one id starts one task, even if it is retried concurrently, on another replica, or during the work [S1-9]', async t => {
  const rig = await openRig(t);
  const other = await rig.another();
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const turns: number[] = [];
  rig.relay.onClient = async (taskId, { turn }) => {
    turns.push(turn);
    begun.resolve();
    await go.promise;
    await rig.relay.answer(taskId, ['once']);
  };
  const early = [send(rig, legacyParams('t', 'x')), send(other, legacyParams('t', 'x'))];
  await begun.promise;
  const late = await open(other, 'stream', legacyParams('t', 'x'), legacy);
  const [head] = await late.take(1);
  go.resolve();
  for (const { result } of await Promise.all(early)) assert.equal(result.artifacts[0].parts[0].text, 'once');
  assert.deepEqual(shape([head!, ...(await late.rest())]), ['submitted', 'working', '=once', '+.', 'completed']);
  assert.deepEqual(turns, [1]);
});

test('a task begins even if another request has just looked for it in vain', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const { facts, messageIds } = rig.log;
  const [looked, claimed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const last = facts.last.bind(facts);
  facts.last = async () => {
    facts.last = last;
    looked.resolve();
    await claimed.promise;
    return undefined;
  };
  const lookedFor = call(rig, 'subscribe', { id: 't' }, legacy);
  await looked.promise;
  const create = messageIds.create.bind(messageIds);
  messageIds.create = async (...entry) => {
    const revision = await create(...entry);
    // By then the message waits for the feed that the other request opens.
    setTimeout(claimed.resolve, 50);
    return revision;
  };
  assert.equal((await send(rig, legacyParams('t', 'x'))).result?.status.state, 'completed');
  assert.equal((await lookedFor).error?.code, -32001);
});

test('when two different first messages name one task id, one of them is refused', async t => {
  const rig = await openRig(t);
  const other = await rig.another();
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  rig.relay.running = false;
  const answers = [send(rig, legacyParams('t', 'x')), send(other, legacyParams('t', 'y'))];
  assert.equal((await Promise.race(answers)).error?.code, -32602);
  rig.relay.resume();
  const codes = (await Promise.all(answers)).map(answer => answer.error?.code ?? answer.result.status.state);
  assert.deepEqual(codes.sort(), [-32602, 'completed']);
  assert.equal(rig.relay.aggregate('t').turn, 1);
});

test('a claim without a stored message is completed by the retry', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  rig.log.faults.refusals = 1;
  const refused = await send(rig, legacyParams('t', 'x'));
  assert.deepEqual(refused.error?.data, { taskId: 't', reason: 'UNAVAILABLE', retryable: true }, 'S4-39');
  assert.equal((await send(rig, legacyParams('t', 'x'))).result.status.state, 'completed');
});

test('the errors of this form have data that names the task [S3-19 S3-20 S3-21 S4-29 S4-30 S4-31 S4-32 S4-34]', async t => {
  const rig = await openRig(t);
  const post = async (body: string): Promise<RpcAnswer> => {
    const headers = { 'content-type': 'application/json' };
    return (await (await fetch(rig.url, { method: 'POST', headers, body })).json()) as RpcAnswer;
  };
  assert.equal((await post('{"jsonrpc":"2.0","id":1,"method":"tasks/send"')).error?.code, -32700);
  assert.equal((await post('{"jsonrpc":"1.0","id":1,"method":"tasks/send"}')).error?.code, -32600);
  assert.equal((await post('{"jsonrpc":"2.0","id":1,"method":"tasks/fly"}')).error?.code, -32601);
  const invalid = await send(rig, { id: 't', message: { role: 'user' } });
  assert.deepEqual(
    [invalid.error?.code, invalid.error?.data],
    [-32602, { taskId: 't', reason: 'INVALID_PARAMS', retryable: false }],
  );
  for (const method of ['get', 'cancel', 'subscribe'] as const) {
    const { error } = await call(rig, method, { id: 'unknown' }, legacy);
    assert.deepEqual([error?.code, error?.data.taskId, error?.data.retryable], [-32001, 'unknown', false]);
  }
});

test('push notifications are refused as the card declares, both in separate requests and inline [S4-23 S4-36]', async t => {
  const rig = await openRig(t);
  const pushNotification = { url: 'http://127.0.0.1/secret', token: 'secret' };
  const { error } = await send(rig, legacyParams('t', 'x', { pushNotification }));
  assert.equal(error?.code, -32003);
  assert.doesNotMatch(JSON.stringify(error), /secret/);
  for (const method of [DIALECTS.legacy.methods.createPush, DIALECTS.legacy.methods.getPush]) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { id: 't', pushNotificationConfig: pushNotification } });
    const response = await fetch(rig.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    assert.equal(((await response.json()) as RpcAnswer).error?.code, -32003);
  }
});

test('a server fault names only its task and that it is retryable [S4-33 S4-39]', async t => {
  const rig = await openRig(t);
  rig.log.facts.last = async () => {
    throw new Error('secret at /srv/db');
  };
  const { error } = await send(rig, legacyParams('task-1', 'x'));
  const data = { taskId: 'task-1', reason: 'INTERNAL_ERROR', retryable: true };
  assert.deepEqual(error, { code: -32603, message: 'Internal error', data });
});

test('historyLength limits the history in sends and in tasks/get', async t => {
  const rig = await openRig(t);
  requireInputFirst(rig);
  await send(rig, legacyParams('t', 'one'));
  assert.equal((await send(rig, legacyParams('t', 'two', { historyLength: 1 }))).result.history.length, 1);
  assert.equal('history' in (await call(rig, 'get', { id: 't', historyLength: 0 }, legacy)).result, false);
  assert.equal((await call(rig, 'get', { id: 't' }, legacy)).result.history.length, 3);
});

test('a message to a task whose facts have expired is TASK_NOT_FOUND, and does not begin a second task with its id [C-9]', async t => {
  const rig = await openRig(t);
  const index = { contextId: 'c', role: 'supervisor', state: 'TASK_STATE_COMPLETED', startSeq: 1, generation: 3, at: 1 } as const;
  await rig.log.tasks.put('task-1', index);
  const { error } = await call(rig, 'send', legacyParams('task-1', 'x'), legacy);
  assert.equal(error?.code, -32001);
  for await (const _input of rig.log.inputs.read('task-1')) assert.fail('nothing is appended');
});
