import { isVisible } from '@hopline/events';
import type { FactLog, StoredFacts } from './fact-log.ts';

/** Log sequence of the record with which a task begins; `stored`: any of its records, the newest knows best. */
export function startSeqOf({ seq, record }: StoredFacts): number {
  return record.startSeq || seq;
}

/** Everything that is stored of the task whose newest record is given, each fact once. */
export function readTask(facts: FactLog, newest: StoredFacts): AsyncIterable<StoredFacts> {
  return fromStart(facts.read(newest.record.aggregate.taskId, startSeqOf(newest)));
}

/** As `readTask`, and what comes after it. */
export async function followTask(facts: FactLog, newest: StoredFacts, signal: AbortSignal): Promise<AsyncIterable<StoredFacts>> {
  const { taskId } = newest.record.aggregate;
  return fromStart(await facts.follow(taskId, startSeqOf(newest) - 1, signal));
}

/**
 * Records of a task that are read from its beginning, or from a later place by a reader that knows what it has seen. Where that is a place at which its facts were copied forward (PROTOCOL.md 4.3), the
 * copied ones are told as if they stood there for the first time, those of the part it is and of the parts after it; further on they are known, and passed over. The aggregate of all copied parts is that of the newest fact: it is told with the last part alone, so that who waits for it has the facts too.
 */
export async function* fromStart(records: AsyncIterable<StoredFacts>): AsyncGenerator<StoredFacts, void> {
  let isFirst = true;
  let isCopying = false;
  let generation = 0;
  for await (const stored of records) {
    const { copied, ...record } = stored.record;
    // A record between two parts, or in place of the last: their relay died, and nothing names them.
    isCopying = copied !== undefined && (isFirst || isCopying);
    isFirst = false;
    if (copied === undefined || !isCopying) {
      yield stored;
      continue;
    }
    const { facts, last } = copied;
    generation = facts.findLast(isVisible)?.generation ?? generation;
    const aggregate = last ? record.aggregate : { ...record.aggregate, generation, foldedSeq: 0 };
    yield { ...stored, record: { ...record, facts, aggregate } };
    isCopying = !last;
  }
}
