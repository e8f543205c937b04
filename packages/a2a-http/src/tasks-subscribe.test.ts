import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { A2AError, type DialectName, Fold } from '@hopline/a2a';
import { LIMITS } from '@hopline/a2a-server';
import type { StoredFacts } from '@hopline/log';
import { collect } from '../../../test/kit/collect.ts';
import {
  call,
  type Frame,
  open,
  openRig,
  post,
  type Rig,
  StreamReader,
  sendParams,
  shape,
  userMessage,
} from './http-server.test-kit.ts';

/** A working task with these tokens. */
async function working(rig: Rig, tokens: string[]): Promise<string> {
  const begun = Promise.withResolvers<string>();
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.openArtifact(taskId, 'l');
    for (const token of tokens) await rig.relay.text(taskId, 'l', token);
    begun.resolve(taskId);
  };
  await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  return begun.promise;
}

function fold(...streams: Frame[][]): Fold {
  const folded = new Fold();
  for (const [index, frames] of streams.entries()) {
    if (index > 0) folded.resume();
    for (const { decoded } of frames) {
      assert('event' in decoded);
      folded.add(decoded.event);
    }
  }
  assert.deepEqual(folded.violations, []);
  return folded;
}

const generations = (frames: Frame[]) => frames.map(frame => Number(frame.id?.split('.')[0]));

test('without a cursor: the task as it is, then exactly what follows, in both dialects, on any process [S3-31]', async t => {
  const rig = await openRig(t);
  const other = await rig.another();
  const taskId = await working(rig, ['a', 'b']);
  const streams = await Promise.all([
    open(rig, 'subscribe', { id: taskId }),
    open(other, 'subscribe', { id: taskId }, { dialect: '0.3' }),
    open(other, 'subscribe', { id: taskId }, { dialect: '1.0' }),
  ]);
  const heads = await Promise.all(streams.map(stream => stream.take(1)));
  await rig.relay.text(taskId, 'l', 'c');
  await rig.relay.end(taskId);
  for (const [index, stream] of streams.entries()) {
    const frames = [...heads[index]!, ...(await stream.rest())];
    assert.deepEqual(shape(frames), ['task working', '+c', '+.', 'completed']);
    assert.deepEqual(generations(frames), [4, 5, 6, 7]);
    assert.equal(fold(frames).textOf('streaming_result'), 'abc');
  }
});

test('with a cursor: exactly what follows it, no snapshot, live and after the end, by header and by query', async t => {
  const rig = await openRig(t);
  const taskId = await working(rig, ['a', 'b']);
  const live = await open(rig, 'subscribe', { id: taskId }, { headers: { 'last-event-id': '3.1' } });
  assert.deepEqual(shape(await live.take(1)), ['+b']);
  await rig.relay.end(taskId);
  assert.deepEqual(shape(await live.rest()), ['+.', 'completed']);
  for (const dialect of ['1.0', '0.3'] as const) {
    for (const cursor of ['0.0', '1.1', '3.0', '3.999999', '5.1', '6.1']) {
      const after = Number(cursor.split('.')[0]);
      const stream = await open(await rig.another(), 'subscribe', { id: taskId }, { dialect, query: `?cursor=${cursor}` });
      const frames = await stream.rest();
      assert.deepEqual(generations(frames), [1, 2, 3, 4, 5, 6].slice(after), cursor);
    }
  }
});

test('the cursor in the header takes precedence over the one in the URL, which an EventSource repeats unchanged when it reconnects', async t => {
  const rig = await openRig(t);
  const taskId = await working(rig, ['a', 'b']);
  await rig.relay.end(taskId);
  const cursors = { query: '?cursor=1.1', headers: { 'last-event-id': '4.1' } };
  assert.deepEqual(generations(await (await open(rig, 'subscribe', { id: taskId }, cursors)).rest()), [5, 6]);
});

test('unknown tasks, ended tasks without a cursor, and invalid cursors are refused [S4-34 S4-37]', async t => {
  const rig = await openRig(t, { limits: { refoldMsMax: 50 } });
  const code = async (params: unknown, options: Parameters<typeof call>[3]) =>
    (await call(rig, 'subscribe', params, options)).error?.code;
  for (const dialect of ['1.0', '0.3'] as const) {
    for (const id of ['unknown', 'a.b', '*', '>', 'x'.repeat(200)]) assert.equal(await code({ id }, { dialect }), -32001, id);
  }
  const taskId = await working(rig, ['a']);
  for (const cursor of ['', 'x', '4', '-1.0', '4.1', '99.1', '1.1.1', '1e3.0']) {
    const { error } = await call(rig, 'subscribe', { id: taskId }, { query: `?cursor=${cursor}` });
    assert.deepEqual(
      [error?.code, error?.message.includes('send the id of one of its events, or no cursor')],
      [-32602, true],
      cursor,
    );
  }
  await rig.relay.end(taskId);
  const { error: ended } = await call(rig, 'subscribe', { id: taskId });
  assert.deepEqual(
    [ended?.code, ended?.message.includes('get it, or subscribe after the id of one of its events')],
    [-32004, true],
  );
  const legacy = await open(rig, 'subscribe', { id: taskId }, { dialect: '0.3' });
  assert.deepEqual(shape(await legacy.rest()), ['task completed']);
});

test('before 1.0 a client that accepts only event streams gets the error as an event, and other clients get it as JSON [S4-34]', async t => {
  const rig = await openRig(t, {
    authenticate: async ({ headers }) => {
      if (headers['x-bad'] !== undefined) throw new A2AError('UNAUTHENTICATED');
      return { subject: 's' };
    },
  });
  const onlyEvents = { accept: 'text/event-stream' };
  const cases: [dialect: DialectName, method: 'subscribe' | 'stream', params: unknown, code: number][] = [
    ['0.3', 'subscribe', { id: 'unknown' }, -32001],
    ['0.3', 'stream', sendParams(userMessage('x', { taskId: 'unknown' }), '0.3'), -32001],
    ['0.3', 'stream', {}, -32602],
    ['legacy', 'stream', {}, -32602],
  ];
  for (const [dialect, method, params, code] of cases) {
    const about = `${dialect} ${method} ${code}`;
    const events = await post(rig, method, params, { dialect, id: 'i', headers: onlyEvents });
    assert.deepEqual([events.status, events.headers.get('content-type')], [200, 'text/event-stream; charset=utf-8'], about);
    const [frame, ...more] = await new StreamReader(events, dialect).rest();
    assert.deepEqual([frame?.rpc.jsonrpc, frame?.rpc.id, frame?.rpc.error?.code, more.length], ['2.0', 'i', code, 0], about);
    assert.deepEqual([frame?.id, frame?.event], [undefined, undefined], about);
    for (const accept of ['*/*', 'text/event-stream, application/json', 'application/json', 'text/event-stream;q=0']) {
      const json = await post(rig, method, params, { dialect, id: 'i', headers: { accept } });
      assert.match(json.headers.get('content-type') ?? '', /^application\/json/, `${about} ${accept}`);
      assert.deepEqual(await json.json(), frame?.rpc, `${about} ${accept}`);
    }
  }
  const of1 = await post(rig, 'subscribe', { id: 'unknown' }, { headers: onlyEvents });
  assert.deepEqual([of1.status, of1.headers.get('content-type')], [200, 'application/json; charset=utf-8']);
  const refused = await post(rig, 'stream', {}, { dialect: '0.3', headers: { ...onlyEvents, 'x-bad': '1' } });
  assert.deepEqual([refused.status, refused.headers.get('content-type')], [401, 'application/json; charset=utf-8']);
});

test('a subscription stays open during input-required, through the next turn to the end', async t => {
  const rig = await openRig(t);
  const taskId = await working(rig, ['a']);
  const stream = await open(rig, 'subscribe', { id: taskId });
  await rig.relay.end(taskId, 'INPUT_REQUIRED');
  rig.relay.onClient = id => rig.relay.answer(id, ['b']);
  const { result } = await call(rig, 'send', sendParams(userMessage('go on', { taskId })));
  assert.equal(result.task.status.state, 'TASK_STATE_COMPLETED');
  const frames = await stream.rest();
  assert.deepEqual(shape(frames), ['task working', 'input_required', '+.', 'working', '=b', '+.', 'completed']);
});

test('a client that is interrupted after any frame and resumes elsewhere with its last id sees every later frame once [S3-31]', async t => {
  const rig = await openRig(t, { limits: { ringFactsMax: 3 } });
  const other = await rig.another();
  const tokens = ['⟦', '**🎯', ' ', '\n', 'plan', '**⟧', 'ha', 'ha', '', '✅ done'];
  rig.relay.onClient = taskId => rig.relay.answer(taskId, tokens);
  const whole = await (await open(rig, 'stream', sendParams(userMessage('x')))).rest();
  const taskId = (whole[0]!.decoded as { event: { task: { id: string } } }).event.task.id;
  for (let cut = 1; cut <= whole.length; cut += 1) {
    const rest = await (
      await open(cut % 2 === 0 ? rig : other, 'subscribe', { id: taskId }, { headers: { 'last-event-id': whole[cut - 1]!.id! } })
    ).rest();
    assert.deepEqual(
      [...whole.slice(0, cut), ...rest].map(frame => [frame.id, frame.rpc]),
      whole.map(frame => [frame.id, frame.rpc]),
    );
  }
  assert.equal(fold(whole).textOf('streaming_result'), tokens.join(''));
});

test('a live stream interrupted anywhere shows each frame once, whatever is published until the reconnect', async t => {
  const rig = await openRig(t, { limits: { ringFactsMax: 4 }, memory: { follow: { tailCheckMs: 20 } } });
  const servers = [rig, await rig.another(), await rig.another()];
  const text = Array.from({ length: 60 }, (_, n) => `${n} `);
  rig.relay.onClient = async taskId => {
    await rig.relay.openArtifact(taskId, 'l');
    for (const [n, token] of text.entries()) {
      if (n % 7 === 0) rig.log.faults.loseLive += 1;
      await rig.relay.text(taskId, 'l', token);
      if (n % 5 === 0) await new Promise(resolve => setTimeout(resolve, 1));
    }
    await rig.relay.end(taskId);
  };
  const first = await open(rig, 'stream', sendParams(userMessage('x')));
  let frames = await first.take(3);
  await first.cut();
  const taskId = (frames[0]!.decoded as { event: { task: { id: string } } }).event.task.id;
  for (let n = 0; !shape(frames.slice(-1)).includes('completed'); n += 1) {
    const stream = await open(servers[n % 3]!, 'subscribe', { id: taskId }, { headers: { 'last-event-id': frames.at(-1)!.id! } });
    frames = [...frames, ...(await stream.take(1 + (n % 9)))];
    await stream.cut();
  }
  assert.deepEqual(
    generations(frames),
    Array.from(frames, (_, n) => n + 1),
  );
  assert.equal(fold(frames).textOf('streaming_result'), text.join(''));
});

test('after retention a gap is sent, then the task as it is, then what follows', async t => {
  const rig = await openRig(t, { limits: { ringFactsMax: 1 } });
  const taskId = await working(rig, ['a', 'b', 'c', 'd']);
  rig.log.expire('facts', taskId, 6);
  const other = await rig.another();
  for (const cursor of ['1.1', '0.0', '2.9999']) {
    const stream = await open(other, 'subscribe', { id: taskId }, { query: `?cursor=${cursor}` });
    const [gap, head] = await stream.take(2);
    assert.equal(gap?.event, 'gap');
    assert.deepEqual(JSON.parse(gap!.data), { missing: { from: Number(cursor[0]) + 1, to: 4 } });
    assert.equal(gap?.id, undefined);
    assert.deepEqual([...shape([head!]), Number(head!.id!.split('.')[0])], ['task working', 6]);
    await stream.cut();
  }
  const exact = await open(other, 'subscribe', { id: taskId }, { query: '?cursor=4.5' });
  assert.deepEqual(shape(await exact.take(2)), ['+c', '+d']);
  await rig.relay.end(taskId);
  assert.deepEqual(shape(await exact.rest()), ['+.', 'completed']);
  const { result } = await call(other, 'get', { id: taskId });
  assert.equal(result.status.state, 'TASK_STATE_COMPLETED');
});

test('events stored while a client catches up are read from the log when memory no longer holds them, and are not a gap', async t => {
  const rig = await openRig(t, { limits: { ringFactsMax: 1 } });
  const taskId = await working(rig, ['a', 'b', 'c']);
  const live = await open(rig, 'subscribe', { id: taskId });
  await live.take(1);
  const { facts } = rig.log;
  const read = facts.read.bind(facts);
  let isFirst = true;
  facts.read = async function* (...from) {
    // The record that was the newest when the read began; the read ends there.
    const stored = await collect(read(...from));
    if (isFirst) {
      isFirst = false;
      for (const token of ['d', 'e', 'f']) await rig.relay.text(taskId, 'l', token);
      await live.take(3);
    }
    yield* stored;
  };
  const late = await open(rig, 'subscribe', { id: taskId }, { query: '?cursor=1.1' });
  await rig.relay.end(taskId);
  assert.deepEqual(shape(await late.rest()), ['working', '=a', '+b', '+c', '+d', '+e', '+f', '+.', 'completed']);
});

test('without memory for facts, clients of many tasks and clients that resume still get every event', async t => {
  const rig = await openRig(t, { limits: { ringsBytesMax: 1 } });
  const tasks = [await working(rig, ['a']), await working(rig, ['a'])];
  const streams = await Promise.all(tasks.map(id => open(rig, 'subscribe', { id })));
  for (const token of ['b', 'c', 'd']) for (const id of tasks) await rig.relay.text(id, 'l', token);
  const resumed = await Promise.all(tasks.map(id => open(rig, 'subscribe', { id }, { query: '?cursor=1.1' })));
  for (const id of tasks) await rig.relay.end(id);
  for (const stream of streams)
    assert.deepEqual(shape(await stream.rest()), ['task working', '+b', '+c', '+d', '+.', 'completed']);
  for (const stream of resumed)
    assert.deepEqual(shape(await stream.rest()), ['working', '=a', '+b', '+c', '+d', '+.', 'completed']);
});

test('without memory for tasks, the server reads snapshots, answers and duplicates from the log', async t => {
  const rig = await openRig(t, { limits: { viewsBytesMax: 1 } });
  const taskId = await working(rig, ['a', 'b']);
  const streams = await Promise.all([1, 2, 3].map(() => open(rig, 'subscribe', { id: taskId })));
  const heads = await Promise.all(streams.map(stream => stream.take(1)));
  const message = userMessage('go on', { taskId });
  await rig.relay.end(taskId, 'INPUT_REQUIRED');
  rig.relay.onClient = id => rig.relay.answer(id, ['c']);
  const { result } = await call(rig, 'send', sendParams(message));
  assert.deepEqual([result.task.status.state, result.task.artifacts.length], ['TASK_STATE_COMPLETED', 2]);
  for (const [index, stream] of streams.entries()) {
    const frames = [...heads[index]!, ...(await stream.rest())];
    assert.deepEqual(shape(frames), ['task working', 'input_required', '+.', 'working', '=c', '+.', 'completed']);
    assert.equal(fold(frames).textOf('streaming_result'), 'abc');
  }
  const again = await call(rig, 'send', sendParams(message));
  assert.deepEqual(again.result, result);
  const other = await call(rig, 'send', sendParams({ ...message, parts: [{ text: 'stop' }] }));
  assert.equal(other.error?.code, -32602);
});

test('a read waits until this process has everything that the log holds, and is UNAVAILABLE when that takes too long', async t => {
  const rig = await openRig(t);
  const taskId = await working(rig, ['a']);
  const held = Promise.withResolvers<void>();
  const late = async (freshMsMax: number) => {
    const other = await rig.another({ limits: { ...LIMITS, freshMsMax } });
    const follow = other.log.facts.follow.bind(other.log.facts);
    other.log.facts.follow = async (...start) => lateAfter(await follow(...start), 4, held.promise);
    const viewer = await open(other, 'subscribe', { id: taskId });
    assert.deepEqual(shape(await viewer.take(1)), ['task working']);
    return { other, viewer };
  };
  const [impatient, patient] = [await late(100), await late(60_000)];
  await rig.relay.end(taskId);
  assert.equal((await post(impatient.other, 'get', { id: taskId })).status, 503);
  const got = call(patient.other, 'get', { id: taskId });
  await sleep(100);
  held.resolve();
  assert.equal((await got).result?.status.state, 'TASK_STATE_COMPLETED');
  for (const { viewer } of [impatient, patient]) assert.deepEqual(shape(await viewer.rest()), ['+.', 'completed']);
});

/** The records of a task. Records after a generation follow only when `held` resolves. */
async function* lateAfter(records: AsyncIterable<StoredFacts>, generation: number, held: Promise<void>) {
  for await (const stored of records) {
    if (stored.record.aggregate.generation > generation) await held;
    yield stored;
  }
}

test('a task of another role is not found', async t => {
  const rig = await openRig(t);
  const taskId = await working(rig, ['a']);
  const agent = await rig.another({ role: 'agent.argocd' });
  for (const method of ['get', 'cancel', 'subscribe'] as const)
    assert.equal((await call(agent, method, { id: taskId })).error?.code, -32001);
  assert.equal((await call(agent, 'send', sendParams(userMessage('x', { taskId })))).error?.code, -32001);
});

test('two viewers of one task get the same bytes except the request id, and one disconnecting does not affect the other', async t => {
  const rig = await openRig(t);
  const taskId = await working(rig, ['a']);
  const texts = await Promise.all(
    ['1', '2'].map(async id => {
      const response = await post(rig, 'subscribe', { id: taskId }, { id, query: '?cursor=0.0' });
      return response;
    }),
  );
  const third = await open(rig, 'subscribe', { id: taskId });
  await third.take(1);
  await third.cut();
  // Written to both in one turn of the event loop, but each gets its own end.
  await rig.relay.text(taskId, 'l', 'b');
  await sleep(20);
  await rig.relay.end(taskId);
  const [one, two] = await Promise.all(texts.map(response => response.text()));
  assert.equal(one!.replaceAll('"id":"1"', '"id":"2"'), two);
  assert.ok(!one!.includes('"id":"2"') && !two!.includes('"id":"1"'), 'each has the id of its own request');
});

test('a task that is too large for one event is streamed as all of its events, and a message to it is answered without its artifacts', async t => {
  const rig = await openRig(t, { limits: { snapshotBytesMax: 2 } });
  const taskId = await working(rig, ['a', 'b', 'c']);
  const whole = await open(rig, 'subscribe', { id: taskId });
  const head = await whole.take(5);
  assert.deepEqual(shape(head), ['task submitted', 'working', '=a', '+b', '+c']);
  const got = await call(rig, 'get', { id: taskId });
  assert.equal(got.result.artifacts.length, 1);
  await rig.relay.end(taskId, 'INPUT_REQUIRED');
  rig.relay.onClient = id => rig.relay.answer(id, ['d']);
  const reply = await open(rig, 'stream', sendParams(userMessage('yes', { taskId })));
  const frames = await reply.rest();
  assert.deepEqual(shape(frames), ['task working', '=d', '+.', 'completed']);
  assert.equal(fold(frames.slice(0, 1)).task?.artifacts, undefined);
  assert.equal(fold([...head, ...(await whole.rest())]).textOf('streaming_result'), 'abcd');
});

test('a task that is too large for an answer is refused with the limit and a way to read it; it goes on, is listed and is canceled', async t => {
  for (const viewsBytesMax of [1, LIMITS.viewsBytesMax]) {
    const rig = await openRig(t, { limits: { answerBytesMax: 2, snapshotBytesMax: 1, viewsBytesMax } });
    const taskId = await working(rig, ['a', 'b', 'c']);
    const refused = await call(rig, 'get', { id: taskId });
    assert.match(refused.error?.message ?? '', /have more than 2 bytes, too many for one answer: subscribe with the cursor 0\.0/);
    const events = await open(rig, 'subscribe', { id: taskId }, { query: '?cursor=0.0' });
    assert.deepEqual(shape(await events.take(5)), ['task submitted', 'working', '=a', '+b', '+c']);
    const { result } = await call(rig, 'list', {});
    assert.deepEqual(
      result.tasks.map(({ id }: { id: string }) => id),
      [taskId],
    );
    await rig.relay.end(taskId, 'INPUT_REQUIRED');
    const message = userMessage('yes', { taskId });
    rig.relay.onClient = id => rig.relay.publish(id, { kind: 'status', state: 'TASK_STATE_WORKING' });
    const sent = await call(rig, 'send', sendParams(message, '1.0', { blocking: false }));
    assert.equal(sent.result.task.status.state, 'TASK_STATE_WORKING');
    const canceled = await call(rig, 'cancel', { id: taskId });
    assert.equal(canceled.result.status.state, 'TASK_STATE_CANCELED');
  }
});
