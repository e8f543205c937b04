import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JetStreamManager, PeerInfo } from '@nats-io/jetstream';
import { Leaders } from './leaders.ts';

const MS = 1_000_000;

/** The leaders of a cluster in which the server that answers has these replicas. */
function leadersOf(replicas: readonly Partial<PeerInfo>[], count = replicas.length + 1): Leaders {
  const info = async () => ({ state: { last_seq: 7 }, cluster: { leader: 'n0', replicas } });
  return new Leaders({ streams: { info } } as unknown as JetStreamManager, count);
}

test('the state of a stream counts while one of two replicas has answered its leader in the last 4 s', async () => {
  const silent = { current: true, active: 60_000 * MS };
  const { state } = await leadersOf([silent, { current: true, active: 3_999 * MS }]).info('S');
  assert.equal(state.last_seq, 7);
  await assert.rejects(leadersOf([silent, { current: true, active: 4_000 * MS }]).info('S'), /may have been deposed/);
});

test('a server without current replicas, which has just come back, is not believed', async () => {
  const unknown = { current: false, active: 0 };
  await assert.rejects(leadersOf([unknown, unknown]).info('S'), /may have been deposed/);
});

test('the only replica of a stream is always believed', async () => {
  assert.equal((await leadersOf([], 1).info('S')).state.last_seq, 7);
});
