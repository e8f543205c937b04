import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { A2A_METHOD, startHop } from '@hopline/telemetry';
import type { A2AServer } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
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

function viewerOf(server: A2AServer, sink: EventSink): Viewer {
  const hop = startHop(A2A_METHOD.unknown, { kind: 'server', parent: {}, attributes: {} });
  return new Viewer(server, sink, new DeliveryMeter(server, { hop, receivedAt: 0 }, false), false);
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
