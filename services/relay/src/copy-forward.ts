import type { CopiedFacts, Fact, FactRecord } from '@hopline/events';
import { type FactLog, RecordTooLarge, readTask, type StoredFacts } from '@hopline/log';

/** JSON of the facts of one part, UTF-16 units; a part with one fact may be longer. Far below the log's record limit. */
const PART_UNITS_MAX = 128 * 1024;

/** Where a task begins, and since when: `FactRecord`. */
export type TaskStart = { startSeq: number; startStoredAt: number };

/**
 * Stores the facts of an open task again, in order and as they were, so that retention never removes the beginning of a task that goes on (S4-44, PROTOCOL.md 4.3). Only the last part names the new
 * beginning: a relay that dies on the way leaves parts that nobody looks at. Reads and writes one part at a time. Rejects as `append` does; `tooLarge` where a record cannot hold a fact beside the
 * aggregate that has grown since: then the task stays as it was, and loses its beginning in its time. `stopped` where `append` did nothing, because the task is somebody else's now.
 */
export async function copyForward(
  facts: FactLog,
  newest: StoredFacts,
  at: number,
  append: (record: FactRecord) => Promise<number> | undefined,
): Promise<TaskStart | 'tooLarge' | 'stopped'> {
  const { aggregate, startSeq, startStoredAt } = newest.record;
  const before = { startSeq, startStoredAt };
  let begin = 0;
  try {
    for await (const copied of partsOf(readTask(facts, newest))) {
      const begins = copied.last ? { startSeq: begin, startStoredAt: at } : before;
      const seq = await append({ v: 1, facts: [], aggregate, ...begins, copied: copied });
      if (seq === undefined) return 'stopped';
      begin ||= seq;
    }
  } catch (error) {
    if (error instanceof RecordTooLarge) return 'tooLarge';
    throw error;
  }
  return { startSeq: begin, startStoredAt: at };
}

async function* partsOf(records: AsyncIterable<StoredFacts>): AsyncGenerator<CopiedFacts, void> {
  let part = 1;
  let units = 0;
  let facts: Fact[] = [];
  for await (const { record } of records) {
    for (const fact of record.facts) {
      const size = JSON.stringify(fact).length;
      if (facts.length > 0 && units + size > PART_UNITS_MAX) {
        yield { part, last: false, facts };
        part += 1;
        units = 0;
        facts = [];
      }
      facts.push(fact);
      units += size;
    }
  }
  yield { part, last: true, facts };
}
