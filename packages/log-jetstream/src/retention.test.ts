import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leadershipOf, shortageOf } from './retention.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const HOUR_MS = 3_600_000;

const stream = (bytes: number, ageMs: number, more: { discard?: string; max_bytes?: number; max_age?: number } = {}) => ({
  config: { name: 'S', max_bytes: 1_000, max_age: 6 * HOUR_MS * 1_000_000, discard: 'old', ...more },
  state: { bytes, messages: 1, first_ts: new Date(NOW - ageMs).toISOString() },
});

test('a stream whose byte limit removes entries before their age limit is reported, with the time for which it keeps them', () => {
  assert.deepEqual(shortageOf(stream(900, HOUR_MS), NOW), { type: 'removes-by-bytes', stream: 'S', keptMs: HOUR_MS });
  assert.equal(shortageOf(stream(899, HOUR_MS), NOW), undefined, 'it has room');
  assert.equal(shortageOf(stream(1_000, 6 * HOUR_MS), NOW), undefined, 'it removes by age');
  assert.equal(shortageOf(stream(1_000, HOUR_MS, { max_bytes: -1 }), NOW), undefined, 'no bound');
});

test('a stream that refuses new messages when full is reported when it is nearly full', () => {
  assert.deepEqual(shortageOf(stream(900, 0, { discard: 'new', max_age: 0 }), NOW), { type: 'nearly-full', stream: 'S' });
  assert.equal(shortageOf(stream(899, 0, { discard: 'new', max_age: 0 }), NOW), undefined);
});

test('the leadership of a stream comes from the leader of its replicas or from a server without a cluster; otherwise it is unknown', () => {
  const since = '2026-11-25T01:00:00Z';
  assert.equal(leadershipOf({ name: 'C1', leader: 'n1', leader_since: since }, 'id'), `n1 ${since}`);
  assert.equal(leadershipOf({ name: 'C1', leader: 'n1' }, 'id'), undefined, 'one replica in a cluster, or a server before 2.12');
  assert.equal(leadershipOf({ leader: 'n1' }, 'id'), 'id');
  assert.equal(leadershipOf(undefined, 'id'), 'id');
});
