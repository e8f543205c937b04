import type { TaskState } from '@hopline/a2a';
import type { FactsEntry, InputEntry, RecordEntry, TaskEnd, TaskHeader, TaskProgress } from './format.ts';
import { encodeLine } from './json-line.ts';
import { NO_PROGRESS } from './read-task-file.ts';

export type WriteOptions = {
  /** The task as it was when the export began, for a file without facts. */
  outcome: { generation: number; state: TaskState };
  /** Set to continue a truncated file: its header is already written, and `entries` begin after its last records. */
  after?: TaskProgress | undefined;
};

/** The lines of one task, each with its line feed. Only the counts and the last sum are kept in memory. */
export class TaskWriter {
  progress: TaskProgress;

  /** `after`: continues a truncated file after its last whole line. */
  constructor(after: TaskProgress = NO_PROGRESS) {
    this.progress = after;
  }

  header(header: TaskHeader): string {
    return this.#line(header);
  }

  record(entry: RecordEntry): string {
    const line = this.#line(entry);
    if (entry.kind === 'input') {
      this.progress = { ...this.progress, inputs: this.progress.inputs + 1, lastInputSeq: entry.seq };
    } else {
      const { generation, state } = entry.record.aggregate;
      this.progress = { ...this.progress, facts: this.progress.facts + 1, lastFactsSeq: entry.seq, generation, state };
    }
    return line;
  }

  end(outcome: WriteOptions['outcome']): string {
    const { inputs, facts, lastInputSeq, lastFactsSeq } = this.progress;
    const { generation, state = outcome.state } = facts > 0 ? this.progress : outcome;
    return this.#line({ kind: 'end', inputs, facts, lastInputSeq, lastFactsSeq, generation, state } satisfies TaskEnd);
  }

  #line(value: object): string {
    const { line, sum } = encodeLine(value, this.progress.sum);
    this.progress = { ...this.progress, sum };
    return `${line}\n`;
  }
}

/** The lines of one task: header, `entries` and end. */
export async function* writeTask(
  header: TaskHeader,
  entries: AsyncIterable<RecordEntry> | Iterable<RecordEntry>,
  { outcome, after }: WriteOptions,
): AsyncGenerator<string, void> {
  const writer = new TaskWriter(after);
  if (after === undefined) yield writer.header(header);
  for await (const entry of entries) yield writer.record(entry);
  yield writer.end(outcome);
}

/**
 * Merges the inputs and facts of a task in the order in which the log stored them; at equal times, inputs come first. Inputs keep their
 * order, and so do facts, whatever their times are.
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
