import type { TaskState } from '@hopline/a2a';
import type { FactsEntry, InputEntry, RecordEntry, TaskEnd, TaskHeader } from './format.ts';
import { encodeLine } from './json-line.ts';
import { NO_PROGRESS, type TaskProgress } from './read-task-file.ts';

export type WriteOptions = {
  /** The task as it was when the export began, for a file without facts. */
  outcome: { generation: number; state: TaskState };
  /** Continues a file that was cut: its header is written, and `entries` begin after its last records. */
  after?: TaskProgress | undefined;
};

/** The lines of one task, each with its line feed: header, `entries` and end. Nothing is kept but the last sum. */
export async function* writeTask(
  header: TaskHeader,
  entries: AsyncIterable<RecordEntry> | Iterable<RecordEntry>,
  { outcome, after }: WriteOptions,
): AsyncGenerator<string, void> {
  let progress = after ?? NO_PROGRESS;
  const encode = (value: object) => {
    const { line, sum } = encodeLine(value, progress.sum);
    progress = { ...progress, sum };
    return `${line}\n`;
  };
  if (after === undefined) yield encode(header);
  for await (const entry of entries) {
    progress = advance(progress, entry);
    yield encode(entry);
  }
  const { inputs, facts, lastInputSeq, lastFactsSeq } = progress;
  const { generation, state = outcome.state } = facts > 0 ? progress : outcome;
  yield encode({ kind: 'end', inputs, facts, lastInputSeq, lastFactsSeq, generation, state } satisfies TaskEnd);
}

function advance(progress: TaskProgress, entry: RecordEntry): TaskProgress {
  if (entry.kind === 'input') return { ...progress, inputs: progress.inputs + 1, lastInputSeq: entry.seq };
  const { generation, state } = entry.record.aggregate;
  return { ...progress, facts: progress.facts + 1, lastFactsSeq: entry.seq, generation, state };
}

/**
 * Inputs and facts of a task in the order in which the log stored them; of equal times inputs come first. Both keep their own order,
 * whatever their times are.
 */
export async function* inOrderOfTime(
  inputs: AsyncIterable<InputEntry>,
  facts: AsyncIterable<FactsEntry>,
): AsyncGenerator<RecordEntry, void> {
  const sources = [inputs[Symbol.asyncIterator](), facts[Symbol.asyncIterator]()] as const;
  try {
    let [input, fact] = await Promise.all([sources[0].next(), sources[1].next()]);
    while (input.done !== true || fact.done !== true) {
      if (input.done !== true && (fact.done === true || input.value.storedAt <= fact.value.storedAt)) {
        yield input.value;
        input = await sources[0].next();
      } else if (fact.done !== true) {
        yield fact.value;
        fact = await sources[1].next();
      }
    }
  } finally {
    await Promise.all(sources.map(source => source.return?.()));
  }
}
