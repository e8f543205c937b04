import type { Msg } from '@nats-io/nats-core';

/** A message from a consumer, with the delivery metadata of its reply subject. */
export type Delivery = {
  msg: Msg;
  /** Stream sequence. */
  seq: number;
  /** 1, 2, 3, … per consumer: a gap is a lost message. */
  consumerSeq: number;
  /** Delivery count of this message, 1-based. */
  deliveries: number;
  /** Epoch milliseconds at which the stream stored the message. */
  storedAt: number;
  /** Messages that match the consumer and were not delivered yet. */
  pending: number;
};

const NANO_DIGITS_OF_MS = 6;
const PREFIX = '$JS.ACK.';

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<seq>.<consumerSeq>.<nanoseconds>.<pending>`, or with `<domain>.<account>` after ACK
 * and a random token at the end (written by newer servers, 2.15 by default). Undefined for anything else.
 */
export function parseDelivery(msg: Msg): Delivery | undefined {
  const { reply } = msg;
  if (reply?.startsWith(PREFIX) !== true) return undefined;
  const tokens = reply.split('.');
  const at = tokens.length === 9 ? 4 : tokens.length >= 11 ? 6 : undefined;
  if (at === undefined) return undefined;
  return {
    msg,
    deliveries: Number(tokens[at]),
    seq: Number(tokens[at + 1]),
    consumerSeq: Number(tokens[at + 2]),
    storedAt: Number(tokens[at + 3]!.slice(0, -NANO_DIGITS_OF_MS)),
    pending: Number(tokens[at + 4]),
  };
}
