import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { Msg } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { type Pull, PullInbox, parseDelivery } from './pull-inbox.ts';

const of = (reply: string | undefined) => {
  const parsed = parseDelivery({ reply } as Msg);
  if (!parsed) return undefined;
  const { msg: _, ...delivery } = parsed;
  return delivery;
};

test('both forms of the reply subject give the same delivery', () => {
  const delivery = { deliveries: 2, seq: 41, consumerSeq: 7, storedAt: 1_795_232_553_579, pending: 3 };
  assert.deepEqual(of('$JS.ACK.S.c1.2.41.7.1795232553579981086.3'), delivery);
  assert.deepEqual(of('$JS.ACK._.acc.S.c1.2.41.7.1795232553579981086.3'), delivery);
  assert.deepEqual(of('$JS.ACK.hub.acc.S.c1.2.41.7.1795232553579981086.3.r4nd0m'), delivery);
});

test('a message that no consumer delivered is not a delivery', () => {
  for (const reply of [undefined, '', '_INBOX.x', '$JS.ACK.S.c1', '$JS.API.S.c1.2.41.7.1.3', '$JS.ACK.S.c1.2.41.7.1.3.x'])
    assert.equal(of(reply), undefined);
});

test('a token that should be a number but is not becomes NaN, which no reader expects as the next sequence', () => {
  assert.equal(of('$JS.ACK.S.c1.2.41.x7.1795232553579981086.3')?.consumerSeq, Number.NaN);
  assert.equal(of('$JS.ACK.S.c1.2.4-1.7.1795232553579981086.3')?.seq, Number.NaN);
});

const INBOX = '_INBOX.reader';
const HEARTBEAT = { subject: INBOX, headers: { code: 100, description: 'Idle Heartbeat', get: () => '' } } as unknown as Msg;
const settle = () => new Promise(resolve => setImmediate(resolve));

/** A pull over the part of a connection that it needs. `pongs`: the answers to its PINGs. The test resolves them to send them. */
function pulling(t: TestContext, pull: Pull) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const pongs: (() => void)[] = [];
  let onMsg: (msg: Msg) => void = () => {};
  const connection = {
    createInbox: () => INBOX,
    subscribe: (_subject: string, listener: typeof onMsg) => {
      onMsg = listener;
    },
    onDisconnect: () => () => {},
    send: () => true,
    nc: { flush: () => new Promise<void>(resolve => pongs.push(resolve)) },
  } as unknown as Connection;
  const inbox = new PullInbox(connection, 'S', 'c', () => {});
  let end: string | undefined;
  void inbox.pull(pull).then(how => {
    end = how;
  });
  return { pongs, end: () => end, receive: (msg: Msg) => onMsg(msg), tick: (ms: number) => t.mock.timers.tick(ms) };
}

const READING = { batch: 512, expiresMs: 60_000, heartbeatMs: 1_000 };

test('a request without a heartbeat counts as lost in less than four seconds, once the server has answered a PING', async t => {
  const { pongs, end, tick } = pulling(t, READING);
  tick(3_400);
  assert.equal(pongs.length, 0);
  tick(500);
  await settle();
  assert.deepEqual([pongs.length, end()], [1, undefined], 'the server may be late, or this process was suspended');
  pongs[0]!();
  await settle();
  assert.equal(end(), 'lost');
});

test('a request is kept if a heartbeat arrives before the answer to the PING', async t => {
  const { pongs, end, receive, tick } = pulling(t, READING);
  tick(4_000);
  receive(HEARTBEAT);
  pongs[0]!();
  await settle();
  assert.deepEqual([pongs.length, end()], [1, undefined]);
});

test('a request that has no heartbeats counts as lost if it does not end in time and the server answers a PING', async t => {
  const { pongs, end, tick } = pulling(t, { batch: 1, expiresMs: 5_000 });
  tick(8_900);
  assert.equal(pongs.length, 0);
  tick(200);
  pongs[0]!();
  await settle();
  assert.equal(end(), 'lost');
});
