import type { Fact } from '@hopline/events';
import type { FactLog, RecordFacts } from '@hopline/log';

/**
 * The records of a shard from its beginning. A task may stay open for longer than its facts are kept, and then only their copy (PROTOCOL.md
 * 4.3) is left. All facts of such a copy are yielded with its first part. Other copies stay empty, because their facts come before them.
 */
export async function* withCopies(
  facts: Pick<FactLog, 'read'>,
  batches: AsyncIterable<readonly RecordFacts[]>,
): AsyncGenerator<readonly RecordFacts[], void> {
  /** Tasks with copies whose facts were yielded. */
  const yielded = new Set<string>();
  /** Tasks of whose copy only some parts have arrived, without the last one, because their relay died. */
  const unfinished = new Set<string>();
  const withCopy = async (record: RecordFacts): Promise<RecordFacts> => {
    const { taskId } = record;
    if (yielded.has(taskId)) return record;
    const isFirst = unfinished.delete(taskId) || (await isFirstOfTask(facts, record));
    const copy = isFirst ? await copyOf(facts, record) : undefined;
    if (isFirst && copy === undefined) unfinished.add(taskId);
    else yielded.add(taskId);
    return copy === undefined ? record : { ...record, facts: copy };
  };
  for await (const records of batches) {
    const whole: RecordFacts[] = [];
    for (const record of records) {
      if (record.facts.length === 0) whole.push(await withCopy(record));
      else {
        if (unfinished.delete(record.taskId)) yielded.add(record.taskId);
        whole.push(record);
      }
    }
    yield whole;
  }
}

async function isFirstOfTask(facts: Pick<FactLog, 'read'>, { taskId, seq }: RecordFacts): Promise<boolean> {
  for await (const first of facts.read(taskId, 1)) return first.seq === seq;
  return false;
}

/** The facts of the copy that begins with a record. Undefined if no copy begins with it, or if the last part is missing. */
async function copyOf(facts: Pick<FactLog, 'read'>, { taskId, seq }: RecordFacts): Promise<Fact[] | undefined> {
  const parts: Fact[][] = [];
  for await (const { record } of facts.read(taskId, seq)) {
    const { copied } = record;
    if (copied?.part !== parts.length + 1) return undefined;
    parts.push(copied.facts);
    if (copied.last) return parts.flat();
  }
  return undefined;
}
