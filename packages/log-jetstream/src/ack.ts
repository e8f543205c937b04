import type { Msg } from '@nats-io/nats-core';

/** What an answer to a publish means. */
export type Ack =
  | { verdict: 'stored'; seq: number; duplicate: boolean }
  /** `retry`: it will pass. `conflict`: somebody else wrote in between. `refused`: the same again would be refused again. */
  | { verdict: 'retry' | 'conflict' | 'too-large' | 'refused'; reason: string };

/** Error codes of nats-server/server/errors.json. */
const WRONG_LAST_SEQUENCE = 10071;
const MESSAGE_TOO_LARGE = 10054;
const RETRIED = new Set([
  // Another write with that id is being stored (2.11+).
  10158,
  // The newest sequence is not known yet: a write to that subject is being stored (2.11+).
  10164,
  // Too many requests (2.11+).
  10167,
  // Not stored: the stream is full. Work is refused then; consumers make room again.
  10077,
]);
const NO_RESPONDERS = 503;

export function parseAck(msg: Msg): Ack {
  if (msg.data.length === 0) {
    // No stream takes the subject, or the stream has no leader right now: an election takes 4-9 s.
    return { verdict: 'retry', reason: msg.headers?.code === NO_RESPONDERS ? 'no leader' : 'empty answer' };
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
    if (!answer.stream || !answer.seq) return { verdict: 'retry', reason: 'answer is no ack' };
    return { verdict: 'stored', seq: answer.seq, duplicate: answer.duplicate === true };
  }
  const reason = error.description ?? `error ${error.err_code}`;
  if (error.err_code === WRONG_LAST_SEQUENCE) return { verdict: 'conflict', reason };
  if (error.err_code === MESSAGE_TOO_LARGE) return { verdict: 'too-large', reason };
  const passes = RETRIED.has(error.err_code ?? 0) || error.code === 429 || (error.code ?? 0) >= 500;
  return { verdict: passes ? 'retry' : 'refused', reason };
}
