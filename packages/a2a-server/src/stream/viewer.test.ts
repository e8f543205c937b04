import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Fact } from '@hopline/events';
import { LogUnavailable, TokenBucket } from '@hopline/log';
import type { MemoryLog } from '@hopline/log/memory';
import { A2A_METHOD, startHop } from '@hopline/telemetry';
import { untilTick } from '../../../../test/kit/until.ts';
import type { A2AServer } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import { LIMITS } from '../limits.ts';
import { SentBudget } from '../quotas/sent-budget.ts';
import { openServer } from '../server.test-kit.ts';
import { DeliveryMeter } from './delivery-meter.ts';
import type { EventSink } from './event-sink.ts';
import { Viewer } from './viewer.ts';

/** The feed of a task that works, and its listeners. */
async function openFeed(t: TestContext) {
  const { server, log, relay, lines } = openServer(t);
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'x' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe', creates: true } as const;
  const stored = Promise.withResolvers<void>();
  relay.onClient = () => stored.resolve();
  await log.inputs.append('task', { v: 1, at: 1, from: 'client', input }, { id: 'task:m' });
  await stored.promise;
  const { feed, release } = await server.feeds.acquire('task', 'existing', {});
  t.after(() => {
    release();
    server.close();
  });
  const listeners = new Set<unknown>();
  const { listen, unlisten } = feed;
  feed.listen = listener => {
    listeners.add(listener);
    listen.call(feed, listener);
  };
  feed.unlisten = listener => {
    listeners.delete(listener);
    unlisten.call(feed, listener);
  };
  return { server, feed, listeners, log, relay, lines };
}

/** A response whose client reads everything until it disconnects. */
function openSink(closed = false, more: Partial<EventSink> = {}): EventSink {
  const nothing = () => {};
  const adding = { addEvent: nothing, addSnapshot: nothing, addGap: nothing };
  const ending = { end: nothing, fail: nothing, drain: nothing, cut: nothing };
  const flushing = { flush: nothing, flushAll: async () => !closed, keepAlive: nothing };
  return { closed, backlog: 0, written: 0, open: nothing, onClose: nothing, ...adding, ...ending, ...flushing, ...more };
}

function viewerOf(server: A2AServer, sink: EventSink, budget?: SentBudget): Viewer {
  const hop = startHop(A2A_METHOD.unknown, { kind: 'server', parent: {}, attributes: {} });
  return new Viewer(server, {
    sink,
    meter: new DeliveryMeter(server, { hop, receivedAt: 0 }, false),
    budget,
    endsAtInputRequired: false,
    showsTimeline: false,
  });
}

test('a viewer listens to its feed until it stops, and never starts if its client has already left', async t => {
  const { server, feed, listeners } = await openFeed(t);
  const ways = [
    (viewer: Viewer, from: TaskFeed) => viewer.follow(from, { generation: 0, seq: 0 }),
    (viewer: Viewer, from: TaskFeed) => viewer.followFromSnapshot(from),
    (viewer: Viewer, from: TaskFeed) => viewer.followFromThisRecord(from, 'm'),
    (viewer: Viewer, from: TaskFeed) => viewer.followFromMessage(from, 'm'),
  ];
  for (const follow of ways) {
    const viewer = viewerOf(server, openSink());
    follow(viewer, feed);
    assert.equal(listeners.size, 1);
    viewer.stop();
    assert.equal(listeners.size, 0);
    follow(viewerOf(server, openSink(true)), feed);
    assert.equal(listeners.size, 0, 'nothing would end it');
  }
});

test('an event that cannot be encoded for one client fails only that stream', async t => {
  const { server, feed, relay, lines } = await openFeed(t);
  const failed: string[] = [];
  const received: string[] = [];
  const addEvent = () => {
    throw new TypeError('not encodable');
  };
  const failing = (name: string, more: Partial<EventSink> = {}) =>
    openSink(false, { addEvent, fail: ({ code }) => void failed.push(`${name} ${code}`), ...more });
  const flushing = Promise.withResolvers<boolean>();
  viewerOf(server, failing('at once')).follow(feed, { generation: 1, seq: 0 });
  viewerOf(server, failing('after a flush', { flushAll: () => flushing.promise })).followFromSnapshot(feed);
  viewerOf(server, openSink(false, { addEvent: ({ cursor }) => void received.push(cursor) })).follow(feed, {
    generation: 1,
    seq: 0,
  });
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_WORKING' });
  await untilTick(() => feed.generation >= 2);
  flushing.resolve(true);
  await new Promise(setImmediate);
  assert.deepEqual(failed, ['at once INTERNAL_ERROR', 'after a flush INTERNAL_ERROR']);
  assert.deepEqual([received, feed.fault], [['2.2'], undefined]);
  const logged = lines.filter(({ level }) => level === 'error').map(({ message, fields }) => [message, String(fields.err)]);
  assert.deepEqual(logged, Array(2).fill(['stream failed', 'TypeError: not encodable']));
});

test('a record that cannot be folded fails the streams of its task, and its cause is logged', async t => {
  const { server, feed, log, lines } = await openFeed(t);
  const failed: string[] = [];
  viewerOf(server, openSink(false, { fail: ({ code }) => void failed.push(code) })).follow(feed, { generation: 1, seq: 0 });
  const { seq, record } = (await log.facts.last('task'))!;
  const facts = [{ kind: 'artifact.updated', generation: 2, at: 2 }];
  const aggregate = { ...record.aggregate, generation: 2 };
  await log.facts.append({ ...record, facts, aggregate } as never, { expected: seq, id: 'damaged' });
  await untilTick(() => failed.length > 0);
  assert.deepEqual(failed, ['INTERNAL_ERROR']);
  const logged = lines.map(({ level, message, fields }) => [level, message, (fields.err as Error).name]);
  assert.deepEqual(logged, [['error', 'stream failed', 'TypeError']]);
});

/** Everything that a viewer sends, as `gap <from>-<to>`, `task <generation> <text>`, the generation of an event, or `end`. */
function recordingSink(sent: string[]): EventSink {
  return openSink(false, {
    addEvent: ({ generation }) => void sent.push(`${generation}`),
    addGap: ({ from, to }) => void sent.push(`gap ${from}-${to}`),
    addSnapshot: ({ artifacts = [] }, _cursor, generation) =>
      void sent.push(`task ${generation} ${artifacts.flatMap(({ parts }) => parts.map(({ text }) => text)).join('')}`),
    end: () => void sent.push('end'),
    fail: ({ code }) => void sent.push(code),
  });
}

function textFact(generation: number, text: string): Fact {
  const artifactUpdate = { taskId: 'task', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text }] } };
  const event = { artifactUpdate: { ...artifactUpdate, append: generation !== 2, lastChunk: false } };
  return { kind: 'artifact.updated', at: generation, generation, event, lane: 'l', producer: 'supervisor', attempt: 1 };
}

function endFact(generation: number): Fact {
  const status = { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-01T00:00:00Z' } as const;
  return {
    kind: 'status.changed',
    at: generation,
    generation,
    event: { statusUpdate: { taskId: 'task', contextId: 'c', status } },
  };
}

/** Appends a record after the newest one. */
async function store(log: MemoryLog, fact: Fact & { generation: number }): Promise<number> {
  const { seq, record } = (await log.facts.last('task'))!;
  const state = fact.kind === 'status.changed' ? fact.event.statusUpdate.status.state : record.aggregate.state;
  const aggregate = { ...record.aggregate, state, generation: fact.generation };
  const next = { ...record, facts: [fact], aggregate, startSeq: record.startSeq || seq };
  return (await log.facts.append(next, { expected: seq, id: crypto.randomUUID() })).seq;
}

test('when the log loses its tail, open viewers get a gap, then the refolded task, then the events after it', async t => {
  const { server, feed, log } = await openFeed(t);
  const sent: string[] = [];
  viewerOf(server, recordingSink(sent)).follow(feed, { generation: 0, seq: 0 });
  for (const [generation, text] of [
    [2, 'one '],
    [3, 'two '],
    [4, 'three '],
  ] as const)
    await store(log, textFact(generation, text) as Fact & { generation: number });
  await untilTick(() => sent.length === 4);
  log.loseFacts(2);
  log.reconnect();
  await store(log, { ...textFact(1_000, 'two three '), lostAfter: 2 } as never);
  await untilTick(() => sent.length === 6);
  await store(log, textFact(1_001, 'four') as never);
  await store(log, endFact(1_002) as never);
  await untilTick(() => sent.includes('end'));
  assert.deepEqual(sent, ['1', '2', '3', '4', 'gap 5-1000', 'task 1000 one two three ', '1001', '1002', 'end']);
});

test('a client that reconnects while lost facts are folded again waits for them', async t => {
  const { feed, log } = await openFeed(t);
  for (const generation of [2, 3]) await store(log, textFact(generation, `${generation} `) as never);
  await untilTick(() => feed.generation === 3);
  log.loseFacts(2);
  let isBack = false;
  const back = feed.refresh().then(() => {
    isBack = true;
  });
  await untilTick(() => feed.generation === 2);
  for (let turns = 0; turns < 50; turns += 1) await new Promise(setImmediate);
  assert.equal(isBack, false, 'the task as it was before is not shown');
  await store(log, { ...textFact(1_000, 'three '), lostAfter: 2 } as never);
  await back;
  assert.equal(feed.generation, 1_000);
});

test('after a loss, a client that names an event later than the newest one waits until the task has such an event or ends', async t => {
  const { feed, log } = await openFeed(t);
  const [early, late, never] = [1, 3, 2_000].map(generation => feed.reaches(generation));
  assert.equal(await early, true);
  await store(log, { ...textFact(1_000, 'one '), lostAfter: 1 } as never);
  assert.equal(await late, true);
  await store(log, endFact(1_001) as never);
  assert.equal(await never, false);
});

test('a later generation that names its predecessor follows without a gap, live, from memory and from the log', async t => {
  const { server, feed, log } = await openFeed(t);
  const [live, late, resumed]: string[][] = [[], [], []];
  viewerOf(server, recordingSink(live!)).follow(feed, { generation: 0, seq: 0 });
  await store(log, textFact(2, 'one ') as never);
  await store(log, { ...textFact(1_000, 'two '), lostAfter: 2 } as never);
  await store(log, textFact(1_001, 'three') as never);
  await untilTick(() => live!.length === 4);
  viewerOf(server, recordingSink(late!)).follow(feed, { generation: 2, seq: 0 });
  viewerOf(server, recordingSink(resumed!)).follow(feed, { generation: 0, seq: 0 });
  await store(log, endFact(1_002) as never);
  await untilTick(() => [live, late, resumed].every(sent => sent!.includes('end')));
  assert.deepEqual(live, ['1', '2', '1000', '1001', '1002', 'end']);
  assert.deepEqual(late, ['1000', '1001', '1002', 'end']);
  assert.deepEqual(resumed, live);
});

test('viewers get a gap and the task if the log has lost the task and reuses its sequences before they notice', async t => {
  const { server, feed, log } = await openFeed(t);
  const sent: string[] = [];
  viewerOf(server, recordingSink(sent)).follow(feed, { generation: 0, seq: 0 });
  await store(log, textFact(2, 'one ') as never);
  await untilTick(() => sent.length === 2);
  const created = (await log.facts.read('task', 1)[Symbol.asyncIterator]().next()).value!;
  log.faults.loseLive = 10;
  log.loseFacts(0);
  for (let n = 0; n < 9; n += 1) log.garbage('facts', 'other');
  await log.facts.append(created.record, { expected: 0, id: 'again' });
  log.faults.loseLive = 0;
  await store(log, { ...textFact(1_000, 'one two'), lostAfter: 1 } as never);
  await untilTick(() => sent.length === 4);
  assert.deepEqual(sent, ['1', '2', 'gap 3-1000', 'task 1000 one two']);
});

test('the viewers of a task that is not folded again end with an error, or with the ended task', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (const left of ['nothing', 'an end', 'a beginning'] as const) {
    const { server, feed, log } = await openFeed(t);
    const sent: string[] = [];
    viewerOf(server, recordingSink(sent)).follow(feed, { generation: 1, seq: 0 });
    await store(log, textFact(2, 'one ') as never);
    await store(log, textFact(3, 'two ') as never);
    await untilTick(() => sent.length === 2);
    log.loseFacts(left === 'nothing' ? 0 : 1);
    if (left === 'an end') await store(log, endFact(2) as never);
    log.reconnect();
    if (left === 'a beginning') await untilTick(() => feed.generation === 1);
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    t.mock.timers.tick(LIMITS.refoldMsMax);
    const expected = { nothing: ['UNAVAILABLE'], 'an end': ['gap 4-4', 'task 2 ', 'end'], 'a beginning': ['gap 4-4', 'task 1 '] };
    await untilTick(() => sent.length === 2 + expected[left].length);
    assert.deepEqual(sent.slice(2), expected[left], left);
  }
});

/** A viewer that has received generations 2 and 3, which the log has lost since. Its timers do not run. */
async function viewerOfLostEvents(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { server, feed, log } = await openFeed(t);
  const sent: string[] = [];
  viewerOf(server, recordingSink(sent)).follow(feed, { generation: 1, seq: 0 });
  for (const generation of [2, 3]) await store(log, textFact(generation, `${generation} `) as never);
  await untilTick(() => sent.length === 2);
  log.loseFacts(1);
  log.reconnect();
  await untilTick(() => feed.generation === 1);
  for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
  return { log, sent };
}

test('a process that cannot reach the log ends its viewers and does not show them a task without the lost part', async t => {
  const { log, sent } = await viewerOfLostEvents(t);
  // From here on nothing reaches the process, and the lost part is folded again elsewhere.
  log.faults.loseLive = 1;
  await store(log, { ...textFact(1_000, 'two three '), lostAfter: 1 } as never);
  t.mock.method(log.facts, 'last', async () => {
    throw new LogUnavailable('the log does not answer');
  });
  t.mock.timers.tick(LIMITS.refoldMsMax);
  await untilTick(() => sent.length > 2);
  assert.deepEqual(sent.slice(2), ['UNAVAILABLE']);
});

test('viewers wait for lost events while the log elects a leader, and see nothing older', async t => {
  const { log, sent } = await viewerOfLostEvents(t);
  // The server that lost power led the stream, so this waits for an election, for a request sent before the election ended, and for a check
  // by the relay.
  t.mock.timers.tick(9_000 + 2_000 + 5_000);
  for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
  assert.deepEqual(sent.slice(2), []);
  await store(log, { ...textFact(1_000, 'two three '), lostAfter: 1 } as never);
  await untilTick(() => sent.length > 3);
  assert.deepEqual(sent.slice(2), ['gap 4-1000', 'task 1000 two three ']);
});

test('events that retention removed before they were read are reported as a gap, never omitted silently', async t => {
  const { server, feed, log } = await openFeed(t);
  const [live, resumed, late]: string[][] = [[], [], []];
  viewerOf(server, recordingSink(live!)).follow(feed, { generation: 1, seq: 1 });
  await store(log, textFact(2, 'one ') as never);
  await untilTick(() => live!.length === 1);
  log.faults.loseLive = 1;
  const missed = await store(log, textFact(3, 'two ') as never);
  log.expire('facts', 'task', missed);
  const { seq, record } = (await log.facts.last('task'))!;
  log.expire('facts', 'task', seq + 1);
  const next = { ...record, facts: [textFact(4, 'three')], aggregate: { ...record.aggregate, generation: 4 } };
  await log.facts.append(next as never, { expected: 0, id: 'after' });
  await untilTick(() => live!.length === 3);
  assert.deepEqual(
    live!.map(one => one.split(' ').slice(0, 2).join(' ')),
    ['2', 'gap 3-4', 'task 4'],
  );
  // One viewer has a cursor before the hole, the other has none.
  viewerOf(server, recordingSink(resumed!)).follow(feed, { generation: 2, seq: 2 });
  viewerOf(server, recordingSink(late!)).followFromSnapshot(feed);
  await untilTick(() => resumed!.length === 2 && late!.length === 1);
  assert.deepEqual(
    resumed!.map(one => one.split(' ').slice(0, 2).join(' ')),
    ['gap 3-3', 'task 4'],
  );
  assert.match(late![0]!, /^task 4/);
});

test('the snapshot of a followed task holds everything that its other viewers have received', async t => {
  const { server, feed, log } = await openFeed(t);
  const sent: string[] = [];
  viewerOf(server, recordingSink(sent)).follow(feed, { generation: 1, seq: 1 });
  let text = '';
  for (let generation = 2; generation <= 6; generation += 1) {
    await store(log, textFact(generation, `${generation} `) as never);
    text += `${generation} `;
    await untilTick(() => sent.length === generation - 1);
    const snapshot: string[] = [];
    viewerOf(server, recordingSink(snapshot)).followFromSnapshot(feed);
    await untilTick(() => snapshot.length === 1);
    assert.deepEqual(snapshot, [`task ${generation} ${text}`]);
  }
});

/** A client that reads everything. Each event takes 100 bytes. */
function countingSink(received: string[], cuts: string[]): EventSink {
  const sink = openSink(false, {
    addEvent: ({ cursor }) => void received.push(cursor),
    cut: () => void cuts.push('cut'),
    fail: ({ code }) => void cuts.push(code),
  });
  return Object.defineProperty(sink, 'written', { get: () => 100 * received.length });
}

const budgetOf = (perSecond: number, burst: number) => new SentBudget([new TokenBucket({ perSecond, burst }, performance.now())]);

test("a stream beyond its caller's budget waits without being cut, and does not delay other streams", async t => {
  const { server, feed, relay } = await openFeed(t);
  const [paced, other, cuts]: string[][] = [[], [], []];
  // The first event exceeds the budget by 50 bytes, which take 14 hours to come back.
  const viewer = viewerOf(server, countingSink(paced!, cuts!), budgetOf(0.001, 50));
  viewer.follow(feed, { generation: 1, seq: 0 });
  viewerOf(server, countingSink(other!, cuts!)).follow(feed, { generation: 1, seq: 0 });
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_WORKING' });
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await untilTick(() => other!.length >= 2);
  assert.deepEqual([paced, other, cuts], [['2.2'], ['2.2', '3.3'], []]);
  viewer.stop();
});

test('a paced stream sends all of its events', async t => {
  const { server, feed, relay } = await openFeed(t);
  const [received, cuts]: string[][] = [[], []];
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_WORKING' });
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await untilTick(() => feed.generation >= 3);
  // Each event exceeds the budget by 99 bytes, which is a wait of 10 ms.
  const viewer = viewerOf(server, countingSink(received!, cuts!), budgetOf(10_000, 1));
  const ended = Promise.withResolvers<void>();
  const stop = viewer.stop.bind(viewer);
  viewer.stop = () => {
    stop();
    ended.resolve();
  };
  // From now on the events are only in the log.
  feed.ring.empty();
  viewer.follow(feed, { generation: 0, seq: 0 });
  await ended.promise;
  assert.deepEqual([received, cuts], [['1.1', '2.2', '3.3'], []]);
});

test('while its client reads slowly, a stream needs the record that it is sending, and no record once the client has everything', async t => {
  const { server, feed, log } = await openFeed(t);
  for (const generation of [2, 3, 4]) await store(log, textFact(generation, `${generation} `) as never);
  await untilTick(() => feed.generation === 4);
  const storedAt: (number | undefined)[] = [];
  for await (const stored of log.facts.read('task', 1)) {
    storedAt.push(stored.storedAt);
    if (storedAt.length === 4) break;
  }
  // From now on the events are only in the log.
  feed.ring.empty();
  const reads: ((isOpen: boolean) => void)[] = [];
  const viewer = viewerOf(server, openSink(false, { flushAll: () => new Promise(resolve => reads.push(resolve)) }));
  assert.equal(viewer.neededSince, undefined);
  viewer.follow(feed, { generation: 1, seq: 0 });
  const needed: (number | undefined)[] = [];
  for (const generation of [2, 3, 4]) {
    await untilTick(() => reads.length === generation - 1);
    needed.push(viewer.neededSince);
    reads.at(-1)!(true);
  }
  assert.ok(storedAt.every(at => at !== undefined));
  assert.deepEqual(needed, [storedAt[1], storedAt[2], undefined]);
  viewer.stop();
  assert.equal(viewer.neededSince, undefined);
});
