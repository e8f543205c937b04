/*
 * Answers of relays: stored messages as they are in the log, with SEQ, and an end. Each answer ends with a message that has ANSWERED, the number of stored
 * messages before it or in it, so that the agent notices a lost one. An empty message shows that the relay still reads.
 */

import type { ApiError } from '@nats-io/jetstream';
import { headers, type MsgHdrs } from '@nats-io/nats-core';
import type { Headers } from '../message-headers.ts';

const SEQ = 'Hopline-Seq';
const STORED_AT = 'Hopline-Stored-At';
const TASK = 'Hopline-Task';
export const ANSWERED = 'Hopline-Answered';

/** Headers of a message in a feed: its number, the task's number in the feed, and `textAfter` (see LiveRecord). */
export const FEED_NUMBER = 'Hopline-Feed-Number';
export const FEED_TASK = 'Hopline-Feed-Task';
export const TEXT_AFTER = 'Hopline-Text-After';

/** A stored message in an answer. */
export type AnsweredMessage = { seq: number; data: Uint8Array; header: Headers | undefined; storedAt?: number; task?: string };

/** The end of an answer. `error`: the relay could not read, and the agent may ask again. */
export type AnswerEnd = {
  error?: string;
  /** Sequence at which the rest of the records begins. */
  next?: number;
  /** Sequence up to which all records were read. */
  tail?: number;
  isLost?: boolean;
  count?: number;
  /** The id under which the relay receives requests for feeds. */
  reader?: string;
  /** An answer of the JetStream API that a repeated request would not change. */
  apiError?: ApiError;
  /** The feed is unknown to the relay. */
  isUnknown?: true;
};

/** The headers of a stored message together with those of an answer. Always a new object, because nats.js modifies its argument. */
export function withAnswer({ header, seq, storedAt, task }: AnsweredMessage): MsgHdrs {
  const copy = copyOf(header);
  copy.set(SEQ, `${seq}`);
  if (storedAt !== undefined) copy.set(STORED_AT, `${storedAt}`);
  if (task !== undefined) copy.set(TASK, task);
  return copy;
}

/** Leaves out headers that nats.js refuses to write. Agents look only for headers that Hopline and the server have written. */
export function copyOf(stored: Headers | undefined): MsgHdrs {
  const copy = headers();
  for (const [name, values] of stored ?? []) for (const value of values) appendTo(copy, name, value);
  return copy;
}

function appendTo(copy: MsgHdrs, name: string, value: string): void {
  try {
    copy.append(name, value);
  } catch {
    // Another client of the log wrote it.
  }
}

/** The stored message in a part of an answer; undefined if it has none. */
export function answeredMessageOf(data: Uint8Array, header: Headers | undefined): AnsweredMessage | undefined {
  const seq = Number(header?.get(SEQ));
  if (!(seq > 0)) return undefined;
  const storedAt = Number(header?.get(STORED_AT));
  const task = header?.get(TASK);
  return { seq, data, header, ...(storedAt > 0 && { storedAt }), ...(task && { task }) };
}
