import type { Msg } from '@nats-io/nats-core';
import { headersOf } from './message-headers.ts';

/** The meaning of a publish acknowledgement. */
export type Ack =
  | { verdict: 'stored'; seq: number; duplicate: boolean }
  /** `retry`: a transient error. `conflict`: another writer was first. `refused`: a retry would be refused again. */
  | { verdict: 'retry' | 'conflict' | 'too-large' | 'refused'; reason: string }
  /** A stream that rejects new messages has no room; `stream` is its name. */
  | { verdict: 'full'; reason: string; stream: string };

/** Error codes of nats-server/server/errors.json. */
const WRONG_LAST_SEQUENCE = 10071;
const MESSAGE_TOO_LARGE = 10054;
const STORE_FAILED = 10077;
const FULL = /maximum (bytes|messages)/i;
const RETRIED = new Set([
  // Another write with this id is in process (2.11+).
  10158,
  // Reported while a write to the same subject is in progress, because the last sequence is then unknown (2.11+).
  10164,
  // Too many requests (2.11+).
  10167,
  // The message could not be stored.
  STORE_FAILED,
]);
const NO_RESPONDERS = 503;
/** No server listens on the subject: its stream has no leader, or does not exist. */
export const NO_LEADER = 'no leader';

export function parseAck(msg: Msg): Ack {
  if (msg.data.length === 0) {
    // An election takes 4-9 s.
    return { verdict: 'retry', reason: headersOf(msg)?.code === NO_RESPONDERS ? NO_LEADER : 'empty answer' };
  }
  let answer: {
    stream?: string;
    seq?: number;
    duplicate?: boolean;
    error?: { code?: number; err_code?: number; description?: string };
  };
  try {
    answer = msg.json();
  } catch {
    return { verdict: 'retry', reason: 'answer is not JSON' };
  }
  const { error } = answer;
  if (!error) {
    if (!answer.stream || !answer.seq) return { verdict: 'retry', reason: 'answer is not an ack' };
    return { verdict: 'stored', seq: answer.seq, duplicate: answer.duplicate === true };
  }
  const reason = error.description ?? `error ${error.err_code}`;
  if (error.err_code === WRONG_LAST_SEQUENCE) return { verdict: 'conflict', reason };
  if (error.err_code === MESSAGE_TOO_LARGE) return { verdict: 'too-large', reason };
  if (error.err_code === STORE_FAILED && FULL.test(reason)) return { verdict: 'full', reason, stream: answer.stream ?? '' };
  const passes = RETRIED.has(error.err_code ?? 0) || error.code === 429 || (error.code ?? 0) >= 500;
  return { verdict: passes ? 'retry' : 'refused', reason };
}
