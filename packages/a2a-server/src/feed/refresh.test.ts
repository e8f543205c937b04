import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { openServer } from '../server.test-kit.ts';

const TASK = 'task';
const CLIENTS = 50;

test('clients that reconnect during a read of the newest record share the next read, which begins after all of them', async t => {
  const { server, log, relay } = openServer(t);
  const created = Promise.withResolvers<void>();
  relay.onClient = () => created.resolve();
  const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe' } as const;
  await log.inputs.append(TASK, { v: 1, at: Date.now(), from: 'client', input }, { id: 'm' });
  await created.promise;
  const { feed, release } = await server.feeds.acquire(TASK, 'existing', {});
  t.after(release);

  const last = log.facts.last.bind(log.facts);
  const gates: (() => void)[] = [];
  t.mock.method(log.facts, 'last', async (taskId: string) => {
    const gate = Promise.withResolvers<void>();
    gates.push(gate.resolve);
    await gate.promise;
    return last(taskId);
  });
  const first = feed.refresh();
  const others = Array.from({ length: CLIENTS }, () => feed.refresh());
  assert.equal(gates.length, 1, 'one read is under way');
  await relay.publish(TASK, { kind: 'status', state: 'TASK_STATE_WORKING' });
  gates[0]!();
  await first;
  assert.equal(gates.length, 2, 'one more for all others');
  gates[1]!();
  await Promise.all(others);
  assert.equal(gates.length, 2);
  assert.equal(feed.state, 'TASK_STATE_WORKING');
});
