import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from './connection.ts';
import { ReadSlots } from './read-slots.ts';
import { retry } from './retry.ts';

/** The part of a connection that a request needs. Its server answers every PING. */
function connectionTo(reads: ReadSlots): Connection {
  return {
    connected: true,
    closed: new AbortController().signal,
    reads,
    nc: { flush: async () => {} },
    requireOpen: () => {},
    toDenied: () => undefined,
    onDisconnect: () => () => {},
    onReconnect: () => () => {},
  } as unknown as Connection;
}

const settle = () => new Promise(resolve => setImmediate(resolve));

/**
 * If tries began during the wait for a slot, they would be sent again and again, until most answers were for callers that no longer wait
 * (ADR 215).
 */
test('a read that waits for its turn is sent once, however long it waits', async t => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  t.after(() => mock.timers.reset());
  const reads = new ReadSlots();
  const connection = connectionTo(reads);
  const earlier = Promise.withResolvers<void>();
  for (let n = 0; n < 12; n += 1) void reads.run('a', () => earlier.promise);
  let sent = 0;
  const send = async () => {
    sent += 1;
    return 'answer';
  };
  const answer = retry(connection, 'a read', send, { readsFrom: 'a' });
  for (let ms = 0; ms < 15_000; ms += 500) {
    mock.timers.tick(500);
    await settle();
  }
  assert.equal(sent, 0);
  earlier.resolve();
  assert.equal(await answer, 'answer');
  assert.equal(sent, 1);
});

test('a request that ends at its time limit reports the last answer, not the try that the limit cut short', async () => {
  const unavailable = Object.assign(new Error('no answer from a leader'), { name: 'RequestError' });
  let sent = 0;
  const send = () => {
    sent += 1;
    return sent === 1 ? Promise.reject(unavailable) : new Promise<never>(() => {});
  };
  const answer = retry(connectionTo(new ReadSlots()), 'a request', send, { timeoutMs: 1_000 });
  await assert.rejects(answer, { name: 'LogUnavailable', message: 'a request: no answer from a leader' });
  assert.ok(sent > 1);
});

test('while the answer to an earlier try arrives in parts, the request is not sent again', async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<string>();
  const { promise: repeated, resolve: onRepeated } = Promise.withResolvers<void>();
  const parts: (() => void)[] = [];
  const send = (onPart: () => void) => {
    if (parts.push(onPart) === 2) onRepeated();
    return answered;
  };
  const received = retry(connectionTo(new ReadSlots()), 'a request', send);
  await repeated;
  // Longer than the wait for the answer to the second try, because timers of mock.timers cannot be restarted.
  for (let n = 0; n < 20; n += 1) {
    parts[0]!();
    await sleep(250);
  }
  assert.equal(parts.length, 2);
  answer('answer');
  assert.equal(await received, 'answer');
});
