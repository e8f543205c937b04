import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { A2A_METHOD, startHop } from '@hopline/telemetry';
import type { A2AServer } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import { SentBudget } from '../quotas/sent-budget.ts';
import { TokenBucket } from '../quotas/token-bucket.ts';
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

/** A response whose client reads everything, until it has left. */
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
  });
}

test('a viewer listens to its feed until it stops, and to none when its client has left before', async t => {
  const { server, feed, listeners } = await openFeed(t);
  const ways = [
    (viewer: Viewer, from: TaskFeed) => viewer.follow(from, { generation: 0, seq: 0 }),
    (viewer: Viewer, from: TaskFeed) => viewer.followFromSnapshot(from),
    (viewer: Viewer, from: TaskFeed) => viewer.followFromThisRecord(from),
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

test('an event that the stream of one client cannot encode fails that stream alone', async t => {
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
  while (feed.generation < 2) await new Promise(setImmediate);
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
  while (failed.length === 0) await new Promise(setImmediate);
  assert.deepEqual(failed, ['INTERNAL_ERROR']);
  const logged = lines.map(({ level, message, fields }) => [level, message, (fields.err as Error).name]);
  assert.deepEqual(logged, [['error', 'stream failed', 'TypeError']]);
});

/** A client that reads everything; each event has 100 bytes. */
function countingSink(received: string[], cuts: string[]): EventSink {
  const sink = openSink(false, {
    addEvent: ({ cursor }) => void received.push(cursor),
    cut: () => void cuts.push('cut'),
    fail: ({ code }) => void cuts.push(code),
  });
  return Object.defineProperty(sink, 'written', { get: () => 100 * received.length });
}

const budgetOf = (perSecond: number, burst: number) => new SentBudget([new TokenBucket({ perSecond, burst }, performance.now())]);

test('a stream beyond the budget of its caller waits, is not cut, and holds up no other', async t => {
  const { server, feed, relay } = await openFeed(t);
  const [paced, other, cuts]: string[][] = [[], [], []];
  // 50 bytes are missing after the first event: they come back within 14 hours.
  const viewer = viewerOf(server, countingSink(paced!, cuts!), budgetOf(0.001, 50));
  viewer.follow(feed, { generation: 1, seq: 0 });
  viewerOf(server, countingSink(other!, cuts!)).follow(feed, { generation: 1, seq: 0 });
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_WORKING' });
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  while (other!.length < 2) await new Promise(setImmediate);
  assert.deepEqual([paced, other, cuts], [['2.2'], ['2.2', '3.3'], []]);
  viewer.stop();
});

test('a paced stream sends all of its events', async t => {
  const { server, feed, relay } = await openFeed(t);
  const [received, cuts]: string[][] = [[], []];
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_WORKING' });
  await relay.publish('task', { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  while (feed.generation < 3) await new Promise(setImmediate);
  // Each event is 99 bytes too many: 10 ms.
  const viewer = viewerOf(server, countingSink(received!, cuts!), budgetOf(10_000, 1));
  const ended = Promise.withResolvers<void>();
  const stop = viewer.stop.bind(viewer);
  viewer.stop = () => {
    stop();
    ended.resolve();
  };
  // Only the log has them.
  feed.ring.empty();
  viewer.follow(feed, { generation: 0, seq: 0 });
  await ended.promise;
  assert.deepEqual([received, cuts], [['1.1', '2.2', '3.3'], []]);
});
