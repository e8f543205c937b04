import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LeaseValue } from '../log.ts';
import { LeaseView, MEMBER_FORGOTTEN_MS } from './lease-view.ts';

const keys = { member: 'relay', shard: 'shard' };
const LEASE_MS = 100;

function viewOf(entries: Record<string, LeaseValue>, atMs = 0): LeaseView {
  const view = new LeaseView({ keys, leaseMs: LEASE_MS, instance: 'me' });
  let revision = 0;
  for (const [key, value] of Object.entries(entries)) {
    revision += 1;
    view.apply({ type: 'entry', key, value, revision }, atMs);
  }
  return view;
}

function seeOwnHeartbeat(view: LeaseView, heartbeat: number, atMs: number): void {
  view.apply({ type: 'entry', key: 'relay.me', value: { owner: 'me', heartbeat }, revision: 100 + heartbeat }, atMs);
}

test('a process counts as dead when its heartbeat has not changed for longer than a lease, exact to the millisecond', () => {
  const view = viewOf({ 'relay.a': { owner: 'a', heartbeat: 1 } });
  view.ready();
  seeOwnHeartbeat(view, 1, 0);
  seeOwnHeartbeat(view, 2, LEASE_MS);
  assert.deepEqual([...view.leases(1).live], ['a', 'me']);
  seeOwnHeartbeat(view, 3, LEASE_MS + 1);
  assert.deepEqual([...view.leases(1).live], ['me']);
  view.apply({ type: 'entry', key: 'relay.a', value: { owner: 'a', heartbeat: 2 }, revision: 2 }, LEASE_MS + 1);
  assert.deepEqual([...view.leases(1).live], ['a', 'me']);
});

test('a view that stops just after a heartbeat of this process does not show the others as dead', () => {
  const view = viewOf({ 'relay.a': { owner: 'a', heartbeat: 1 } });
  view.ready();
  seeOwnHeartbeat(view, 1, 50);
  // The view is still current, although the newest heartbeat of the other process is older than a lease.
  assert.equal(view.isCurrent(50 + LEASE_MS), true);
  assert.deepEqual([...view.leases(1).live].sort(), ['a', 'me']);
});

test('a member with a late heartbeat is silent until its lease ends, and dead if the broker reports it gone, unless it sends another heartbeat', () => {
  const view = viewOf({ 'relay.a': { owner: 'a', heartbeat: 1 }, 'shard.0': { owner: 'a' } });
  const keysOf = (ms: number, nowMs: number) => view.silent(ms, nowMs).map(({ key }) => key);
  view.ready();
  seeOwnHeartbeat(view, 1, 0);
  assert.deepEqual(keysOf(40, 40), []);
  assert.deepEqual(keysOf(40, 41), ['relay.a']);
  const [silent] = view.silent(40, 41);
  seeOwnHeartbeat(view, 2, LEASE_MS);
  assert.deepEqual(keysOf(40, LEASE_MS), ['relay.a']);
  view.markGone(silent!);
  assert.deepEqual([...view.leases(1).live], ['me']);
  assert.deepEqual(keysOf(40, LEASE_MS), []);
  view.apply({ type: 'entry', key: 'relay.a', value: { owner: 'a', heartbeat: 2 }, revision: 200 }, LEASE_MS);
  view.markGone(silent!);
  assert.deepEqual([...view.leases(1).live].sort(), ['a', 'me']);
  seeOwnHeartbeat(view, 3, 2 * LEASE_MS);
  seeOwnHeartbeat(view, 4, 2 * LEASE_MS + 1);
  assert.deepEqual(keysOf(40, 2 * LEASE_MS + 1), [], 'dead by its lease');
});

test('the view is current if it has been read and shows a heartbeat of this process within a lease', () => {
  const view = viewOf({ 'relay.a': { owner: 'a', heartbeat: 1 } });
  view.ready();
  assert.equal(view.isCurrent(0), false, 'no own heartbeat');
  seeOwnHeartbeat(view, 1, 0);
  assert.equal(view.isCurrent(LEASE_MS), true);
  assert.equal(view.isCurrent(LEASE_MS + 1), false);
  view.clear();
  seeOwnHeartbeat(view, 2, LEASE_MS);
  assert.equal(view.isCurrent(LEASE_MS), false, 'being read again');
  view.ready();
  assert.equal(view.isCurrent(LEASE_MS), true);
});

test('after an interruption, the silence of others counts from the process’s own first heartbeat', () => {
  const view = viewOf({ 'relay.a': { owner: 'a', heartbeat: 1 } });
  view.ready();
  seeOwnHeartbeat(view, 1, 0);
  seeOwnHeartbeat(view, 2, LEASE_MS);
  seeOwnHeartbeat(view, 3, LEASE_MS + 1);
  assert.deepEqual([...view.leases(1).live], ['me'], 'own heartbeats were seen: the other one is dead');
  seeOwnHeartbeat(view, 4, 10_000);
  assert.deepEqual([...view.leases(1).live], ['a', 'me']);
  seeOwnHeartbeat(view, 5, 10_000 + LEASE_MS);
  assert.deepEqual([...view.leases(1).live], ['a', 'me']);
  seeOwnHeartbeat(view, 6, 10_001 + LEASE_MS);
  assert.deepEqual([...view.leases(1).live], ['me']);
});

test('silence proves nothing while the bucket is being read; afterwards entries that it no longer holds are gone', () => {
  const view = viewOf({
    'relay.a': { owner: 'a', heartbeat: 1 },
    'relay.b': { owner: 'b', heartbeat: 1 },
    'shard.0': { owner: 'b' },
  });
  view.ready();
  seeOwnHeartbeat(view, 1, 0);
  view.clear();
  view.apply({ type: 'entry', key: 'relay.a', value: { owner: 'a', heartbeat: 1 }, revision: 1 }, 10);
  seeOwnHeartbeat(view, 2, 90);
  view.ready();
  seeOwnHeartbeat(view, 3, 90 + LEASE_MS);
  const { live, owners } = view.leases(1);
  assert.deepEqual([[...live].sort(), [...owners]], [['a', 'me'], []]);
  seeOwnHeartbeat(view, 4, 91 + LEASE_MS);
  assert.deepEqual([...view.leases(1).live], ['me']);
});

test('a released shard has no owner but keeps its checkpoint; a deleted lease leaves nothing', () => {
  const view = viewOf({ 'shard.0': { owner: 'a' }, 'shard.1': { owner: '', checkpoint: 7 } });
  assert.deepEqual([...view.leases(3).owners], [[0, 'a']]);
  assert.equal(view.shard(1)?.value.checkpoint, 7);
  view.apply({ type: 'entry', key: 'shard.0', value: undefined, revision: 3 }, 0);
  assert.deepEqual([...view.leases(3).owners], []);
});

test('a member without a heartbeat for MEMBER_FORGOTTEN_MS is dropped, a lease never is, and a new heartbeat makes the member live again', () => {
  const view = viewOf({ 'relay.a': { owner: 'a', heartbeat: 1 }, 'shard.0': { owner: 'a' } });
  view.ready();
  // One heartbeat during each lease keeps the view current.
  for (let atMs = 0; atMs <= MEMBER_FORGOTTEN_MS; atMs += LEASE_MS) seeOwnHeartbeat(view, 1, atMs);
  view.leases(1);
  assert.equal(view.size, 3);
  seeOwnHeartbeat(view, 1, MEMBER_FORGOTTEN_MS + 1);
  const { owners, live } = view.leases(1);
  assert.deepEqual([view.size, [...owners], [...live]], [2, [[0, 'a']], ['me']]);
  view.apply({ type: 'entry', key: 'relay.a', value: { owner: 'a', heartbeat: 2 }, revision: 300 }, MEMBER_FORGOTTEN_MS + 2);
  assert.deepEqual([...view.leases(1).live].sort(), ['a', 'me']);
});

test('keys of another service are ignored', () => {
  const view = viewOf({
    'notifier.n': { owner: 'n', heartbeat: 1 },
    'notifier-shard.0': { owner: 'n' },
    'relay.a': { owner: 'a', heartbeat: 1 },
    'shard.1': { owner: 'a' },
  });
  seeOwnHeartbeat(view, 1, 0);
  const { live, owners } = view.leases(2);
  assert.deepEqual([...live].sort(), ['a', 'me']);
  assert.deepEqual([...owners], [[1, 'a']]);
  assert.equal(view.size, 3);
});
