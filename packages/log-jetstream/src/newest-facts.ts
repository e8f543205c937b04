import { LaterVersion, type StoredFacts, type Tail } from '@hopline/log';
import { decodeFacts, idOf, isLaterFacts, originOf } from './codec.ts';
import type { NewestMessage } from './direct-gets.ts';

/**
 * The record in the newest message of a task. If that message has no record, the newest record before it, with the sequence of that
 * message. `read`: reads all records. Rejects with LaterVersion if a later version wrote the message.
 */
export async function newestFactsOf(
  newest: NewestMessage,
  taskId: string,
  read: () => AsyncIterable<StoredFacts>,
): Promise<StoredFacts | undefined> {
  const record = decodeFacts(newest.data, taskId);
  if (record) return { seq: newest.seq, record, ...idOf(newest.header), ...originOf(newest.header) };
  if (isLaterFacts(newest.data)) throw new LaterVersion('the newest record of the task was written by a later version');
  let before: StoredFacts | undefined;
  for await (const stored of read()) before = stored;
  if (before === undefined) return undefined;
  const { id: _id, ...rest } = before;
  return { ...rest, seq: newest.seq, ...idOf(newest.header) };
}

export function tailOf(newest: NewestMessage | null, taskId: string): Tail | undefined {
  if (newest === null) return undefined;
  return { seq: newest.seq, startSeq: decodeFacts(newest.data, taskId)?.startSeq ?? 0, ...idOf(newest.header) };
}
