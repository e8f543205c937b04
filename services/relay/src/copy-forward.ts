import type { CopiedFacts, Fact, FactRecord } from '@hopline/events';
import { type FactLog, fromStart, RecordTooLarge, type StoredFacts, startSeqOf } from '@hopline/log';

/**
 * UTF-16 units of one part's facts as JSON, far below the log's limit for a record. A part that consists of a single fact may be longer.
 */
const PART_UNITS_MAX = 128 * 1024;

/** Members of `FactRecord`: sequence of the task's first record, and when its facts were stored. */
export type TaskStart = { startSeq: number; startStoredAt: number };

/**
 * Stores the facts of an open task again, in order and unchanged, so that retention never removes the start of a running task (PROTOCOL.md
 * 4.3). Only the last part moves the start, so if a relay dies before that, its parts are never read. Only one part at a time is in memory.
 * Rejects like `append`. Resolves with `tooLarge` if no record can hold a fact together with the grown aggregate; the task then keeps its
 * old start until retention removes it. Resolves with `stopped` when `append` returns undefined, because the relay lost the task.
 */
export async function copyForward(
  facts: FactLog,
  newest: StoredFacts,
  nowMs: number,
  append: (record: FactRecord) => Promise<number | undefined>,
  partUnitsMax = PART_UNITS_MAX,
): Promise<TaskStart | 'tooLarge' | 'stopped'> {
  const { aggregate, startSeq, startStoredAt } = newest.record;
  const oldStart = { startSeq, startStoredAt };
  let newStartSeq = 0;
  try {
    // Does not use readTask, because `newest` has only the aggregate, and readTask would mistake a copy in one part for the whole task.
    for await (const copied of partsOf(fromStart(facts.read(aggregate.taskId, startSeqOf(newest))), partUnitsMax)) {
      const start = copied.last ? { startSeq: newStartSeq, startStoredAt: nowMs } : oldStart;
      const seq = await append({ v: 1, facts: [], aggregate, ...start, copied });
      if (seq === undefined) return 'stopped';
      newStartSeq ||= seq;
    }
  } catch (error) {
    if (error instanceof RecordTooLarge) return 'tooLarge';
    throw error;
  }
  return { startSeq: newStartSeq, startStoredAt: nowMs };
}

async function* partsOf(records: AsyncIterable<StoredFacts>, partUnitsMax: number): AsyncGenerator<CopiedFacts, void> {
  let part = 1;
  let units = 0;
  let facts: Fact[] = [];
  for await (const { record } of records) {
    for (const fact of record.facts) {
      const size = JSON.stringify(fact).length;
      if (facts.length > 0 && units + size > partUnitsMax) {
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
