import assert from 'node:assert/strict';
import test from 'node:test';
import type { Msg } from '@nats-io/nats-core';
import { parseDelivery } from './pull-inbox.ts';

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
