import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Connection } from './connection.ts';
import type { Delivery } from './pull-inbox.ts';
import { RunningItems } from './running-items.ts';

const AGES_MS = { none: 0, neverReached: 60_000 };

function started(t: TestContext) {
  const sent: string[] = [];
  const send = (_reply: string, response: string) => sent.push(response) > 0;
  const connection = { closed: new AbortController().signal, send } as unknown as Connection;
  const running = new RunningItems(connection, { unclaimedWaitMs: 60_000, claimMs: 120_000 }, () => {});
  t.after(() => running.stop());
  const deliver = (seq: number, storedAt = 0) => {
    const delivery = { seq, storedAt, msg: { reply: `$JS.ACK.${seq}` } } as unknown as Delivery;
    running.add(delivery);
    return delivery;
  };
  return { running, sent, deliver };
}

test('a worker’s entry names the items that have run for long enough, and only these are claimed at the server', t => {
  const { running, sent, deliver } = started(t);
  const delivery = deliver(1);
  assert.deepEqual(running.claimable(AGES_MS.neverReached, 9), [], 'too young');
  running.claimed(running.claimable(AGES_MS.neverReached, 9));
  assert.equal(running.isClaimed(delivery), false);
  assert.deepEqual(sent, []);

  running.claimed(running.claimable(AGES_MS.none, 9));
  assert.equal(running.isClaimed(delivery), true);
  assert.deepEqual(sent, ['-NAK {"delay":120000000000}']);
  deliver(2);
  assert.deepEqual(
    running.claimable(AGES_MS.neverReached, 9),
    [delivery],
    'a claimed item stays in the entry beside a young one',
  );
});

test('the oldest item without a claim decides when the next entry is due', t => {
  const { running, deliver } = started(t);
  assert.equal(running.unclaimedSinceMs(), undefined);
  deliver(1);
  const firstAtMs = running.unclaimedSinceMs()!;
  const second = deliver(2);
  assert.equal(running.unclaimedSinceMs(), firstAtMs);
  running.claimed(running.claimable(AGES_MS.none, 1));
  assert.ok(running.unclaimedSinceMs()! >= firstAtMs);
  running.remove(second);
  assert.equal(running.unclaimedSinceMs(), undefined);
  const again = { seq: 1, storedAt: 0, msg: { reply: '$JS.ACK.1.2' } } as unknown as Delivery;
  running.add(again);
  assert.equal(running.unclaimedSinceMs(), firstAtMs, 'another delivery of a running item does not make it young');
});

test('an item with the sequence of a lost item is a different item', t => {
  const { running, deliver, sent } = started(t);
  const lost = deliver(1, 1_000);
  running.claimed([lost]);
  sent.length = 0;
  const other = deliver(1, 2_000);
  assert.deepEqual([running.isReplaced(lost), running.isReplaced(other)], [true, false]);
  assert.deepEqual([running.has(lost), running.isClaimed(lost), running.newest(lost)], [false, false, undefined]);
  running.remove(lost);
  assert.equal(running.newest(other), other);
  running.claimed([lost, other]);
  assert.deepEqual(sent, ['-NAK {"delay":120000000000}'], 'only the second item is claimed');
  running.remove(other);
  assert.equal(running.isReplaced(lost), false);
});
