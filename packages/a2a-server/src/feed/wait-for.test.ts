import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { openServer } from '../server.test-kit.ts';
import type { TaskChange } from './feed-listener.ts';
import type { TaskFeed } from './task-feed.ts';
import { waitAround, waitFor } from './wait-for.ts';

const TASK = 'task';

async function openFeed(t: TestContext): Promise<{ feed: TaskFeed; publish: () => Promise<void>; end: () => Promise<void> }> {
  const { server, log, relay } = openServer(t);
  const created = Promise.withResolvers<void>();
  relay.onClient = () => created.resolve();
  const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe' } as const;
  const record = { v: 1, at: Date.now(), from: 'client', input } as const;
  await log.inputs.append(TASK, record, { id: 'm' });
  await created.promise;
  const { feed, release } = await server.feeds.acquire(TASK, 'existing', {});
  t.after(release);
  const publish = () => relay.publish(TASK, { kind: 'status', state: 'TASK_STATE_WORKING' });
  return { feed, publish, end: () => relay.end(TASK, 'INPUT_REQUIRED') };
}

test('a wait that has ended receives no further facts', async t => {
  const { feed, publish, end } = await openFeed(t);
  let asked = 0;
  const met = () => {
    asked += 1;
    return true;
  };
  const waiting = waitFor(feed, met, { timeoutMs: 600_000, signal: new AbortController().signal });
  await publish();
  assert.equal(await waiting, 'met');
  const once = asked;
  await end();
  await feed.refresh();
  assert.equal(asked, once);
});

test('a wait fails when the action it wraps fails', async t => {
  const { feed, publish } = await openFeed(t);
  const seen: TaskChange[] = [];
  const failing = waitAround(
    () => Promise.reject(new Error('not stored')),
    feed,
    fact => seen.push(fact) > 1_000,
    { timeoutMs: 600_000, signal: new AbortController().signal },
  );
  await assert.rejects(failing, /not stored/);
  await publish();
  await feed.refresh();
  assert.deepEqual(seen, []);
});
