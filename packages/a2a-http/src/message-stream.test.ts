import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold, type Message, textOf } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import { LogUnavailable } from '@hopline/log';
import { createHopMetrics, type HopMetrics } from '@hopline/telemetry';
import { call, type Frame, open, openRig, post, type RpcAnswer, sendParams, shape, userMessage } from './http-server.test-kit.ts';

function fold(frames: Frame[]): Fold {
  const folded = new Fold();
  for (const { decoded } of frames) {
    assert('event' in decoded);
    folded.add(decoded.event);
  }
  assert.deepEqual(folded.violations, []);
  return folded;
}

const ids = (frames: Frame[]) => frames.map(frame => Number(frame.id?.split('.')[0]));
const taskIdOf = (frame: Frame): string => frame.rpc.result.task?.id ?? frame.rpc.result.id;

for (const dialect of ['1.0', '0.3'] as const) {
  test(`${dialect}: the task comes first, then every event with the caller's id, then the end [S0-2 S0-3 S0-5 S0-6 S0-30 S0-37]`, async t => {
    const rig = await openRig(t);
    rig.relay.onClient = taskId => rig.relay.answer(taskId, ['H', 'ere', ' is']);
    for (const id of ['req-1', 7, 0]) {
      const stream = await open(rig, 'stream', sendParams(userMessage('show argocd version'), dialect), { dialect, id });
      const frames = await stream.rest();
      assert.deepEqual(shape(frames), ['task submitted', 'working', '=H', '+ere', '+ is', '+.', 'completed']);
      assert.deepEqual(ids(frames), [1, 2, 3, 4, 5, 6, 7]);
      for (const { rpc } of frames) assert.deepEqual([rpc.id, rpc.jsonrpc], [id, '2.0']);
      const folded = fold(frames);
      assert.deepEqual([folded.taskIds.size, folded.contextIds.size, folded.ended], [1, 1, true]);
      assert.equal(folded.textOf('streaming_result'), 'Here is');
      const got = await call(rig, 'get', { id: taskIdOf(frames[0]!) }, { dialect });
      assert.equal((got.result.task ?? got.result).id, taskIdOf(frames[0]!));
    }
  });
}

test('the task echoes the message, with its ids and otherwise unchanged [S0-4 S1-8]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const parts = [
    { kind: 'text', text: ' a\n' },
    { kind: 'data', data: { k: [1] } },
    { kind: 'file', file: { bytes: 'aGk=', name: 'n', mimeType: 'text/plain' } },
  ];
  const message = { kind: 'message', role: 'user', messageId: 'm-1', parts, metadata: { own: { deep: true } } };
  const stream = await open(rig, 'stream', { message, metadata: { network: 'n' } }, { dialect: '0.3' });
  const [first] = await stream.rest();
  const { id: taskId, contextId, history } = first!.rpc.result;
  assert.deepEqual(history, [{ ...message, taskId, contextId }]);
  assert.deepEqual(first?.rpc.result.status.state, 'submitted');
});

test('the task of a stream has at most as many messages as the client asks for', async t => {
  const rig = await openRig(t);
  const messagesOf = async (text: string, historyLength: number | undefined, taskId?: string) => {
    rig.relay.onClient = async id => {
      await rig.relay.publish(id, { kind: 'status', state: 'TASK_STATE_WORKING' });
      await rig.relay.end(id, 'INPUT_REQUIRED');
    };
    const message = userMessage(text, taskId === undefined ? {} : { taskId });
    const params = sendParams(message, '1.0', historyLength === undefined ? {} : { historyLength });
    const frames = await (await open(rig, 'stream', params)).rest();
    assert.equal(shape(frames).at(-1), 'input_required');
    const { task } = frames[0]!.rpc.result;
    return { id: task.id, texts: task.history?.map(({ parts }: Message) => textOf(parts)) };
  };
  assert.equal((await messagesOf('new', 0)).texts, undefined);
  const { id, texts } = await messagesOf('first', 5);
  assert.deepEqual(texts, ['first']);
  assert.deepEqual((await messagesOf('second', 1, id)).texts, ['second']);
  assert.equal((await messagesOf('third', 0, id)).texts, undefined);
  const all = (await messagesOf('fourth', undefined, id)).texts;
  assert.deepEqual([all[0], all.at(-1)], ['first', 'fourth']);
});

test('headers and a comment precede any work on the task [S0-2 S3-14]', async t => {
  const rig = await openRig(t);
  rig.relay.running = false;
  const response = await post(rig, 'stream', sendParams(userMessage('x')), { headers: { accept: 'application/json' } });
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const reader = response.body!.getReader();
  const { value } = await reader.read();
  assert.equal(Buffer.from(value!).toString(), ': ok\n\n');
  await reader.cancel();
});

test('the documented request works verbatim [S0-33 S0-45]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['v3']);
  const body =
    '{"id":"test-1","method":"message/stream","params":{"message":{"role":"user","parts":[{"kind":"text","text":"show argocd version"}],"messageId":"msg-1"}}}';
  const response = await fetch(`${rig.url}/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body,
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const frames = (await response.text()).split('\n\n').filter(frame => frame.includes('data: '));
  const results = frames.map(frame => JSON.parse(/^data: (.*)$/m.exec(frame)![1]!) as RpcAnswer);
  for (const frame of frames) assert.match(frame, /^id: \d+\.\d+\ndata: \{"jsonrpc":"2\.0","id":"test-1","result":\{.*\}\}$/);
  assert.deepEqual(
    results.map(({ result }) => result.kind),
    ['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update'],
  );
});

test('an artifact update of 0.3 has every key, on every chunk [S2-19 S0-8]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['a', 'b']);
  const stream = await open(rig, 'stream', sendParams(userMessage('x'), '0.3'), { dialect: '0.3' });
  const updates = (await stream.rest()).map(frame => frame.rpc.result).filter(result => result.kind === 'artifact-update');
  assert.equal(updates.length, 3);
  for (const update of updates) {
    assert.deepEqual(Object.keys(update).sort(), ['append', 'artifact', 'contextId', 'kind', 'lastChunk', 'taskId']);
    assert.deepEqual(Object.keys(update.artifact).sort(), ['artifactId', 'description', 'name', 'parts']);
    assert.deepEqual([update.artifact.name, update.artifact.description], ['streaming_result', 'Streaming result from l1']);
  }
  assert.deepEqual(
    updates.map(update => [update.append, update.lastChunk]),
    [
      [false, false],
      [true, false],
      [true, true],
    ],
  );
});

test('a stream ends at input-required, and the next message streams on the same task [C-16]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async (taskId, aggregate) => {
    if (aggregate.turn === 2) return rig.relay.answer(taskId, ['42']);
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
  for (const dialect of ['1.0', '0.3'] as const) {
    const first = await (await open(rig, 'stream', sendParams(userMessage('one'), dialect), { dialect })).rest();
    assert.deepEqual(shape(first), ['task submitted', 'working', 'input_required']);
    const taskId = taskIdOf(first[0]!);
    const answer = userMessage('two', { taskId });
    const second = await (await open(rig, 'stream', sendParams(answer, dialect), { dialect })).rest();
    assert.deepEqual(shape(second), ['task working', '=42', '+.', 'completed']);
    assert.deepEqual(ids(second), [4, 5, 6, 7]);
    const head = second[0]!.decoded;
    assert('event' in head && 'task' in head.event);
    const texts = head.event.task.history?.map(message => message.parts[0]?.text);
    assert.deepEqual(texts, ['one', 'Which one?', 'two'], 'S0-4 S3-11 later turns include the earlier messages');
    fold(second);
  }
});

for (const memory of ['with', 'without'] as const) {
  test(`the retry of a further message gets the same stream as the first try, ${memory} memory for tasks`, async t => {
    const rig = await openRig(t, memory === 'with' ? {} : { limits: { viewsBytesMax: 1, ringsBytesMax: 1 } });
    const { relay } = rig;
    const more = Promise.withResolvers<void>();
    relay.onClient = async (taskId, { turn }) => {
      await relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
      await relay.openArtifact(taskId, `l${turn}`);
      await relay.text(taskId, `l${turn}`, 'first, ');
      if (turn === 2) await more.promise;
      await relay.text(taskId, `l${turn}`, 'second', true);
      await relay.end(taskId, turn === 4 ? 'COMPLETED' : 'INPUT_REQUIRED');
    };
    const { result } = await call(rig, 'send', sendParams(userMessage('one')));
    const taskId: string = result.task.id;
    const params = sendParams(userMessage('two', { taskId }));
    const turn = ['task working', '=first, ', '+second.', 'input_required'];
    const first = await open(rig, 'stream', params);
    const head = await first.take(2);
    const replicas = [rig, await rig.another()];
    const during = await Promise.all(replicas.map(async replica => (await open(replica, 'stream', params)).take(2)));
    more.resolve();
    const whole = [...head, ...(await first.rest())];
    assert.deepEqual(shape(whole), turn);
    for (const frames of during) assert.deepEqual(frames, whole.slice(0, 2));
    const repeated = async () => {
      for (const replica of replicas) assert.deepEqual(await (await open(replica, 'stream', params)).rest(), whole);
    };
    await repeated();
    await call(rig, 'send', sendParams(userMessage('three', { taskId })));
    await repeated();
    await call(rig, 'send', sendParams(userMessage('four', { taskId })));
    await repeated();
  });
}

test('the retry of a further message streams its turn from a copy in the log, or the task as it is once the message has expired', async t => {
  const rig = await openRig(t);
  const { relay } = rig;
  relay.onClient = async (taskId, { turn }) => {
    await relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await relay.openArtifact(taskId, `l${turn}`);
    await relay.text(taskId, `l${turn}`, `${turn}`, true);
    await relay.end(taskId, 'INPUT_REQUIRED');
  };
  const { result } = await call(rig, 'send', sendParams(userMessage('one')));
  const taskId: string = result.task.id;
  const params = sendParams(userMessage('two', { taskId }));
  const whole = await (await open(rig, 'stream', params)).rest();
  assert.deepEqual(shape(whole), ['task working', '=2.', 'input_required']);
  const { facts } = rig.log;
  const { seq, record } = (await facts.last(taskId))!;
  const all: Fact[] = [];
  for await (const { record: one } of facts.read(taskId, 0)) all.push(...one.facts);
  /** Copies facts forward in parts, from which new readers read the task. */
  const copy = async (newest: number, ...parts: Fact[][]) => {
    let expected = newest;
    for (const [index, copied] of parts.entries()) {
      const last = index === parts.length - 1;
      const startSeq = last ? newest + 1 : record.startSeq;
      const one = { ...record, facts: [], copied: { part: index + 1, last, facts: copied }, startSeq };
      ({ seq: expected } = await facts.append(one, { expected, id: `copy-${newest}-${index}` }));
    }
    const frames = await (await open(await rig.another(), 'stream', params)).rest();
    return { newest: expected, frames };
  };
  // The message is at the end of one part, and the status that it causes begins the next one.
  const next = all.findIndex(({ kind }) => kind === 'message.received') + 1;
  const copied = await copy(seq, all.slice(0, next), all.slice(next));
  assert.deepEqual(
    copied.frames.map(({ rpc }) => rpc),
    whole.map(({ rpc }) => rpc),
  );
  const { frames } = await copy(copied.newest, all.slice(next));
  assert.deepEqual(shape(frames), ['task input_required'], 'the message has expired');
});

test('without memory for tasks, the first event for a further message does not contain text that follows it', async t => {
  const rig = await openRig(t, { limits: { viewsBytesMax: 1 } });
  const written = Promise.withResolvers<void>();
  rig.relay.onClient = async (taskId, { turn }) => {
    if (turn === 1) return rig.relay.end(taskId, 'INPUT_REQUIRED');
    await rig.relay.answer(taskId, ['x']);
    written.resolve();
  };
  const { result } = await call(rig, 'send', sendParams(userMessage('one')));
  const { facts } = rig.log;
  const last = facts.last.bind(facts);
  facts.last = async taskId => {
    if ((await last(taskId))?.record.aggregate.turn === 2) await written.promise;
    return last(taskId);
  };
  const params = sendParams(userMessage('two', { taskId: result.task.id }));
  assert.deepEqual(shape(await (await open(rig, 'stream', params)).rest()), ['task working', '=x', '+.', 'completed']);
});

test('a stream stays open during auth-required', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId, 'AUTH_REQUIRED');
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId);
  };
  const frames = await (await open(rig, 'stream', sendParams(userMessage('x')))).rest();
  assert.deepEqual(shape(frames), ['task submitted', 'working', 'auth_required', 'working', 'completed']);
});

test('a client that disconnects at once changes nothing, and does not count as an error [S4-25 S2-35]', async t => {
  const rig = await openRig(t);
  const started = Promise.withResolvers<string>();
  const left = Promise.withResolvers<void>();
  rig.relay.onClient = async taskId => {
    started.resolve(taskId);
    await left.promise;
    await rig.relay.answer(taskId, ['still', ' here']);
  };
  const controller = new AbortController();
  await post(rig, 'stream', sendParams(userMessage('x')), { signal: controller.signal });
  controller.abort();
  const taskId = await started.promise;
  left.resolve();
  const stream = await open(rig, 'subscribe', { id: taskId }, { query: '?cursor=0.0' });
  assert.deepEqual(shape(await stream.rest()).at(-1), 'completed');
  const { result } = await call(rig, 'get', { id: taskId });
  assert.equal(result.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(result.artifacts[0].parts[0].text, 'still here');
  assert.deepEqual(
    rig.lines.filter(line => line.level !== 'info'),
    [],
  );
});

test('100 parallel requests with different ids do not mix [S4-6]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async taskId => {
    const { view } = { view: rig.relay.aggregate(taskId) };
    await rig.relay.answer(taskId, [view.messageIds[0]!, '!']);
  };
  await Promise.all(
    Array.from({ length: 100 }, async (_, n) => {
      const dialect = n % 2 === 0 ? '1.0' : '0.3';
      const id = n % 3 === 0 ? n : `r-${n}`;
      const message = userMessage('x', { messageId: `message-${n}` });
      const frames = await (await open(rig, 'stream', sendParams(message, dialect), { dialect, id })).rest();
      for (const frame of frames) assert.equal(frame.rpc.id, id);
      assert.equal(fold(frames).textOf('streaming_result'), `message-${n}!`);
    }),
  );
});

test('two interleaved artifacts stay two [S0-47]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = async taskId => {
    await rig.relay.openArtifact(taskId, 'a', 'one');
    await rig.relay.openArtifact(taskId, 'b', 'two');
    for (const [lane, text] of [
      ['a', 'x'],
      ['b', '1'],
      ['a', 'y'],
      ['b', '2'],
    ] as const)
      await rig.relay.text(taskId, lane, text);
    await rig.relay.end(taskId);
  };
  const folded = fold(await (await open(rig, 'stream', sendParams(userMessage('x')))).rest());
  assert.deepEqual([folded.textOf('one'), folded.textOf('two')], ['xy', '12']);
});

test('while the log is unreachable, clients get a retryable error frame', async t => {
  const rig = await openRig(t);
  rig.log.faults.refusals = 1;
  const frames = await (await open(rig, 'stream', sendParams(userMessage('x')), { id: 5 })).rest();
  assert.equal(frames.length, 1);
  assert.deepEqual([frames[0]!.rpc.id, frames[0]!.rpc.error?.code], [5, -32603]);
  assert.equal(frames[0]!.rpc.error?.data[0].reason, 'UNAVAILABLE');
  assert.equal(frames[0]!.rpc.error?.data[0].metadata.retryable, 'true');
});

test('a stream whose feed fails before its message counts as an error of the server, not as a client that left', async t => {
  const counted = Promise.withResolvers<string | undefined>();
  const requests: HopMetrics['requests'] = { add: (_n, labels) => counted.resolve(labels?.outcome) };
  const rig = await openRig(t, { metrics: { ...createHopMetrics('ingress'), requests } });
  const ended = Promise.withResolvers<void>();
  rig.log.facts.follow = async () => {
    throw new LogUnavailable('away');
  };
  rig.log.inputs.append = async () => {
    await ended.promise;
    throw new LogUnavailable('away');
  };
  const stream = await open(rig, 'stream', sendParams(userMessage('x')));
  const frames = await stream.rest();
  ended.resolve();
  assert.equal(frames[0]?.rpc.error?.data[0].reason, 'UNAVAILABLE');
  assert.equal(await counted.promise, 'server_error');
});

test('without a relay the message is stored, and the error names its task', async t => {
  const rig = await openRig(t, { limits: { firstFactMsMax: 50 } });
  rig.relay.running = false;
  const [frame] = await (await open(rig, 'stream', sendParams(userMessage('x'), '0.3'), { dialect: '0.3' })).rest();
  assert.equal(frame?.rpc.error?.data.reason, 'UNAVAILABLE');
  const { taskId } = frame!.rpc.error!.data;
  const taken = Promise.withResolvers<string>();
  rig.relay.onClient = id => taken.resolve(id);
  rig.relay.resume();
  assert.equal(await taken.promise, taskId);
});
