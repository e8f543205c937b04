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
  /** Messages for the consumer that were not delivered yet. */
  pending: number;
};

/** A message of the history, from a consumer or from a direct get. */
export type HistoryMessage = Pick<Delivery, 'msg' | 'seq' | 'storedAt'>;

const NANO_DIGITS_OF_MS = 6;
const PREFIX = '$JS.ACK.';
const DOT = 46;
const ZERO = 48;
/**
 * Positions at which the tokens of the current subject begin. The array is reused, because a reader of the whole log parses one subject per
 * message.
 */
const starts: number[] = [];

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<seq>.<consumerSeq>.<nanoseconds>.<pending>`, or with `<domain>.<account>` after ACK
 * and a random token at the end (written by newer servers, 2.15 by default). Undefined for anything else.
 */
export function parseDelivery(msg: Msg): Delivery | undefined {
  const { reply } = msg;
  if (reply?.startsWith(PREFIX) !== true) return undefined;
  let tokens = 0;
  starts[tokens++] = 0;
  for (let index = PREFIX.length - 1; index < reply.length; index++)
    if (reply.charCodeAt(index) === DOT) starts[tokens++] = index + 1;
  // `$JS` and `ACK` are one token here.
  const at = tokens === 8 ? 3 : tokens >= 10 ? 5 : undefined;
  if (at === undefined) return undefined;
  starts[tokens] = reply.length + 1;
  const numberAt = (token: number, cut = 0) => digits(reply, starts[token]!, starts[token + 1]! - 1 - cut);
  return {
    msg,
    deliveries: numberAt(at),
    seq: numberAt(at + 1),
    consumerSeq: numberAt(at + 2),
    storedAt: numberAt(at + 3, NANO_DIGITS_OF_MS),
    pending: numberAt(at + 4),
  };
}

/** NaN for anything but digits. */
function digits(text: string, start: number, end: number): number {
  let value = 0;
  for (let index = start; index < end; index++) {
    const digit = text.charCodeAt(index) - ZERO;
    if (digit < 0 || digit > 9) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}
