import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { compressionAlgorithms, status } from '@grpc/grpc-js';
import { A2AError } from '@hopline/a2a';
import { DRAFT_EXTENSION_URI, draftExtension, RESUME_EXTENSION_URI, resumeExtension } from '@hopline/agent-card';
import { until } from '../../../test/kit/until.ts';
import { type CallFailed, shape, userMessage } from './grpc-client.test-kit.ts';
import { CARD, openRig, type Rig } from './rig.test-kit.ts';

const ANSWER = ['task submitted', 'working', '=a', '+b', '+', 'completed'];

async function answering(t: TestContext, options: Parameters<typeof openRig>[1] = {}): Promise<Rig> {
  const rig = await openRig(t, options);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['a', 'b']);
  return rig;
}

async function failed(promise: Promise<unknown>): Promise<CallFailed> {
  return promise.then(
    () => assert.fail('did not fail'),
    error => error as CallFailed,
  );
}

async function started(rig: Rig): Promise<string> {
  const configuration = { returnImmediately: true };
  return (await rig.client().call('SendMessage', { message: userMessage('x'), configuration })).task.id;
}

test('1.0: a send waits for the end of the task, and a stream shows the same result [S1-2]', async t => {
  const rig = await answering(t);
  const client = rig.client();
  const { task } = await client.call('SendMessage', { message: userMessage('x') });
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(task.artifacts[0].parts.map((part: { text: string }) => part.text).join(''), 'ab');
  const { history, ...rest } = task;
  assert.deepEqual(shape([{ message: history[0] }]), ['message']);
  assert.deepEqual(await client.call('GetTask', { id: task.id, historyLength: 0 }), rest);
  const events = await client.stream('SendStreamingMessage', { message: userMessage('x') }).rest();
  assert.deepEqual(shape(events), ANSWER);
  const { tasks, totalSize, pageSize } = await client.call('ListTasks', { pageSize: 1 });
  assert.deepEqual([tasks.length, totalSize, pageSize], [1, 2, 1]);
});

test('a message of only white space is INVALID_ARGUMENT, in both versions [S4-32]', async t => {
  const client = (await openRig(t)).client();
  const blank = { messageId: 'm', role: 'ROLE_USER' };
  const sent = failed(client.call('SendMessage', { message: { ...blank, parts: [{ text: ' \n ' }] } }));
  assert.equal((await sent).code, status.INVALID_ARGUMENT);
  const older = failed(client.call('SendMessage', { message: { ...blank, content: [{ text: '\t' }] } }, { version: '0.3' }));
  assert.equal((await older).code, status.INVALID_ARGUMENT);
});

test('0.3: the older service runs on the same port [S1-2]', async t => {
  const rig = await answering(t);
  const client = rig.client();
  const version = '0.3' as const;
  const message = { messageId: 'm', role: 'ROLE_USER', content: [{ text: 'x' }] };
  const { task } = await client.call('SendMessage', { message }, { version });
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(task.history[0].content[0].text, 'x');
  assert.equal((await client.call('GetTask', { name: `tasks/${task.id}` }, { version })).id, task.id);
  const request = { message: { ...message, messageId: 'm2' } };
  const events = await client.stream('SendStreamingMessage', request, { version }).rest();
  assert.deepEqual(shape(events), ANSWER);
  assert.equal(events.at(-1).statusUpdate.final, true);
  const again = await client.stream('TaskSubscription', { name: `tasks/${task.id}` }, { version }).rest();
  assert.deepEqual(shape(again), ['task completed']);
  assert.equal((await client.call('GetAgentCard', {}, { version })).name, 'test');
  const refused = await failed(client.call('CancelTask', { name: `tasks/${task.id}` }, { version }));
  assert.deepEqual([refused.code, refused.details[0].reason], [status.FAILED_PRECONDITION, 'TASK_NOT_CANCELABLE']);
});

test('an invalid request gets a status with its reason, and nothing is stored [S3-21]', async t => {
  const rig = await openRig(t);
  const client = rig.client();
  const cases = [
    ['GetTask', { id: 'unknown' }, status.NOT_FOUND, 'TASK_NOT_FOUND'],
    ['CancelTask', { id: 'unknown' }, status.NOT_FOUND, 'TASK_NOT_FOUND'],
    ['GetTask', {}, status.INVALID_ARGUMENT, 'INVALID_PARAMS'],
    ['SendMessage', {}, status.INVALID_ARGUMENT, 'INVALID_PARAMS'],
    ['SendMessage', { message: userMessage('x', { parts: [] }) }, status.INVALID_ARGUMENT, 'INVALID_PARAMS'],
    ['SendMessage', { message: userMessage('x'), tenant: 'acme' }, status.NOT_FOUND, 'TASK_NOT_FOUND'],
    ['ListTasks', { pageSize: 101 }, status.INVALID_ARGUMENT, 'INVALID_PARAMS'],
  ] as const;
  for (const [name, request, code, reason] of cases) {
    const error = await failed(client.call(name, request));
    assert.deepEqual([error.code, error.details[0].reason], [code, reason], `${name} ${JSON.stringify(request)}`);
    assert.equal(error.details[0].domain, 'a2a-protocol.org');
  }
  for (const name of ['SendStreamingMessage', 'SubscribeToTask']) {
    const error = await client.stream(name, {}).failure();
    assert.deepEqual([error.code, error.details[0].reason], [status.INVALID_ARGUMENT, 'INVALID_PARAMS']);
  }
  assert.equal((await client.call('ListTasks', {})).totalSize, undefined);
  assert.equal(rig.open(), 0);
});

test('compressed requests of a call and of a stream are read', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const algorithm of [compressionAlgorithms.deflate, compressionAlgorithms.gzip]) {
    const client = rig.client({ 'grpc.default_compression_algorithm': algorithm });
    const message = () => ({ message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'x'.repeat(5_000) }] } });
    const sent = await client.call('SendMessage', message());
    assert.equal(sent.task.history[0].parts[0].text.length, 5_000);
    const [first] = await client.stream('SendStreamingMessage', message()).take(1);
    assert.equal(first.task.history[0].parts[0].text.length, 5_000);
  }
});

test('the 1.0 service accepts only 1.0 and its patches [C-6]', async t => {
  const rig = await openRig(t);
  const client = rig.client();
  for (const version of ['1.0', '1.0.1']) {
    const error = await failed(client.call('GetTask', { id: 'x' }, { metadata: { 'a2a-version': version } }));
    assert.equal(error.details[0].reason, 'TASK_NOT_FOUND');
  }
  for (const version of ['', '0.3', '1.1', '99.0', 'one']) {
    const error = await failed(client.call('GetTask', { id: 'x' }, { metadata: { 'a2a-version': version } }));
    assert.deepEqual([error.code, error.details[0].reason], [status.FAILED_PRECONDITION, 'VERSION_NOT_SUPPORTED'], version);
  }
  const old = await failed(client.call('GetTask', { name: 'tasks/x' }, { version: '0.3', metadata: { 'a2a-version': '0.3' } }));
  assert.equal(old.details[0].reason, 'TASK_NOT_FOUND');
  const current = await failed(client.call('GetTask', { id: 'x' }));
  assert.deepEqual(
    [old.message, current.message],
    ['TaskNotFoundError: Task not found', 'Task not found'],
    'the Python SDK recognizes errors of 0.3 by this prefix',
  );
});

test('credentials and trace context in metadata work like headers', async t => {
  const seen: unknown[] = [];
  const rig = await openRig(t, {
    authenticate: async ({ headers, tenant }) => {
      seen.push([headers.authorization, headers.traceparent, tenant]);
      throw new A2AError('TASK_NOT_FOUND');
    },
  });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const metadata = { authorization: 'Bearer k', traceparent };
  await failed(rig.client().call('GetTask', { id: 'x', tenant: 'acme' }, { metadata }));
  assert.deepEqual(seen, [[['Bearer k'], [traceparent], 'acme']]);
});

test('a deadline or a disconnect ends the wait, not the task [S2-35]', async t => {
  const rig = await openRig(t);
  const begun = Promise.withResolvers<string>();
  rig.relay.onClient = taskId => begun.resolve(taskId);
  const client = rig.client();
  const late = failed(client.call('SendMessage', { message: userMessage('x') }, { deadline: 2_000 }));
  const taskId = await begun.promise;
  assert.equal((await late).code, status.DEADLINE_EXCEEDED);
  await until(() => rig.open() === 0);
  const stream = client.stream('SubscribeToTask', { id: taskId });
  await stream.take(1);
  assert.equal(rig.open(), 1);
  stream.call.cancel();
  await until(() => rig.open() === 0);
  await rig.relay.answer(taskId, ['a']);
  assert.equal((await client.call('GetTask', { id: taskId })).status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(rig.lines, [], 'nothing went wrong here');
});

test('stream metadata has the cursor to resume from, and a subscription resumes there [S3-31]', async t => {
  const rig = await answering(t);
  const client = rig.client();
  const stream = client.stream('SendStreamingMessage', { message: userMessage('x') });
  const events = await stream.rest();
  const [first] = (await stream.headers).get('first-event-id');
  const [last] = (await stream.trailers).get('last-event-id');
  assert.match(String(first), /^1\.\d+$/);
  assert.match(String(last), new RegExp(`^${events.length}\\.\\d+$`));
  const id = events[0].task.id;
  for (let seen = 1; seen <= events.length; seen += 1) {
    // Only the generation determines where the stream resumes. The rest of a cursor is a hint.
    const back = client.stream('SubscribeToTask', { id }, { metadata: { 'last-event-id': `${seen}.0` } });
    assert.deepEqual(await back.rest(), events.slice(seen));
  }
  const refused = await client.stream('SubscribeToTask', { id }).failure();
  assert.equal(refused.details[0].reason, 'UNSUPPORTED_OPERATION');
  const bad = await client.stream('SubscribeToTask', { id }, { metadata: { 'last-event-id': '99.0' } }).failure();
  assert.equal(bad.details[0].reason, 'INVALID_PARAMS');
});

test('with the resume extension, events have their generation, and are encoded separately', async t => {
  const rig = await openRig(t, { extensions: [resumeExtension] });
  const id = await started(rig);
  const client = rig.client();
  for (const [version, name, request, header] of [
    ['1.0', 'SubscribeToTask', { id }, 'a2a-extensions'],
    ['0.3', 'TaskSubscription', { name: `tasks/${id}` }, 'x-a2a-extensions'],
  ] as const) {
    const metadata = { [header]: `urn:unknown, ${RESUME_EXTENSION_URI}` };
    const counting = client.stream(name, request, { version, metadata });
    const plain = client.stream(name, request, { version });
    const [[first], [same]] = [await counting.take(1), await plain.take(1)];
    assert.deepEqual((await counting.headers).get(header), [RESUME_EXTENSION_URI]);
    assert.deepEqual((await plain.headers).get(header), []);
    const { generation } = first.task.metadata;
    assert.deepEqual(first, { task: { ...same.task, metadata: { ...same.task.metadata, generation } } });
    await rig.relay.publish(id, { kind: 'status', state: 'TASK_STATE_WORKING' });
    const [[next], [nextPlain]] = [await counting.take(1), await plain.take(1)];
    assert.equal(next.statusUpdate.metadata.generation, generation + 1);
    assert.equal(nextPlain.statusUpdate.metadata?.generation, undefined);
    await rig.relay.end(id, 'INPUT_REQUIRED');
    counting.call.cancel();
    plain.call.cancel();
  }
});

test('the draft 1.1: int64 fields if the client asks for them, a long poll, and ABORTED for a different generation', async t => {
  const rig = await openRig(t, { extensions: [draftExtension] });
  const id = await started(rig);
  const client = rig.client();
  const metadata = { 'a2a-extensions': DRAFT_EXTENSION_URI };
  const plain = await client.call('GetTask', { id });
  const shown = await client.call('GetTask', { id }, { metadata });
  const { generation, timeline, ...same } = shown;
  assert.deepEqual([same, generation], [plain, String(rig.relay.aggregate(id).generation)]);
  assert.deepEqual([timeline[0].message.role, timeline[0].generation], ['ROLE_USER', '1']);
  const stream = client.stream('SubscribeToTask', { id }, { metadata });
  assert.deepEqual((await stream.take(1))[0].task, shown);
  const poll = client.call('GetTask', { id, currentGeneration: generation }, { metadata });
  await rig.relay.openArtifact(id, 'draft');
  await rig.relay.text(id, 'draft', 'x');
  const [{ artifactUpdate }] = await stream.take(1);
  assert.equal(artifactUpdate.generation, String(Number(generation) + 1));
  assert.equal((await poll).artifacts.at(-1).startGeneration, artifactUpdate.generation);
  stream.call.cancel();
  const message = { messageId: 'conditional', taskId: id, role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const configuration = { returnImmediately: true, ifGenerationMatch: generation };
  const refused = await failed(client.call('SendMessage', { message, configuration }));
  const { reason, metadata: details } = refused.details[0];
  assert.deepEqual([refused.code, reason], [status.ABORTED, 'TASK_GENERATION_MISMATCH']);
  assert.deepEqual(
    [details.taskId, details.expectedGeneration, details.currentGeneration],
    [id, generation, artifactUpdate.generation],
  );
  const current = { ...configuration, ifGenerationMatch: artifactUpdate.generation };
  await client.call('SendMessage', { message, configuration: current });
  assert.equal(rig.relay.aggregate(id).turn, 2);
});

test('the extended card is returned if the server has one, otherwise refused [S4-2]', async t => {
  const extended = { ...CARD, name: 'for you' };
  const rig = await openRig(t, { extendedCard: () => extended });
  assert.equal((await rig.client().call('GetExtendedAgentCard', {})).name, 'for you');
  assert.equal((await rig.client().call('GetAgentCard', {}, { version: '0.3' })).name, 'for you');
  const other = await openRig(t);
  assert.equal((await other.client().call('GetAgentCard', {}, { version: '0.3' })).name, CARD.name);
  const refused = await failed(other.client().call('GetExtendedAgentCard', {}));
  assert.deepEqual([refused.code, refused.details[0].reason], [status.FAILED_PRECONDITION, 'UNSUPPORTED_OPERATION']);
});

test('after retention the headers name the gap, and the task and later events follow', async t => {
  const rig = await openRig(t, { limits: { ringFactsMax: 1 } });
  const id = await started(rig);
  await rig.relay.openArtifact(id, 'l');
  for (const text of ['a', 'b', 'c', 'd']) await rig.relay.text(id, 'l', text);
  rig.log.expire('facts', id, 5);
  const client = (await rig.another()).client();
  const stream = client.stream('SubscribeToTask', { id }, { metadata: { 'last-event-id': '1.1' } });
  assert.deepEqual(shape(await stream.take(1)), ['task submitted']);
  const headers = await stream.headers;
  const [now] = headers.get('first-event-id');
  assert.deepEqual(headers.get('missing-events'), ['2-3']);
  assert.match(String(now), /^5\./);
  await rig.relay.end(id);
  assert.deepEqual(shape(await stream.rest()), ['+', 'working', 'completed']);
});

test('an event that gRPC cannot encode ends the stream with a status, after the events before it', async t => {
  const rig = await openRig(t);
  const taskId = await started(rig);
  const stream = rig.client().stream('SubscribeToTask', { id: taskId });
  assert.deepEqual(shape(await stream.take(1)), ['task submitted']);
  await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  const parts = [{ text: 'x', filename: 5 as unknown as string }];
  await rig.relay.publish(taskId, {
    kind: 'status',
    state: 'TASK_STATE_INPUT_REQUIRED',
    message: { messageId: 'm', role: 'ROLE_AGENT', parts },
  });
  assert.deepEqual(shape(await stream.take(1)), ['working']);
  const error = await stream.failure();
  assert.deepEqual([error.code, error.details[0].reason], [status.INTERNAL, 'INVALID_AGENT_RESPONSE']);
  await until(() => rig.open() === 0);
});

test('draining ends every stream with its cursor and a retry delay', async t => {
  const rig = await openRig(t);
  const taskId = await started(rig);
  const client = rig.client();
  const stream = client.stream('SubscribeToTask', { id: taskId });
  await stream.take(1);
  const waiting = client.call('SendMessage', { message: userMessage('x') });
  await until(() => rig.open() === 2);
  await rig.server.close();
  const error = await stream.failure();
  assert.equal(error.code, status.UNAVAILABLE);
  assert.deepEqual(
    error.details.map(detail => detail['@type'].split('.').at(-1)),
    ['ErrorInfo', 'RetryInfo'],
  );
  assert.match(String(error.trailers.get('last-event-id')[0]), /^1\.\d+$/);
  assert.equal((await waiting).task.status.state, 'TASK_STATE_SUBMITTED');
  await sleep(0);
  assert.equal(rig.open(), 0);
});
