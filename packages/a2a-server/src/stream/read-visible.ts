import { isVisible } from '@hopline/events';
import { type FactLog, fromStart } from '@hopline/log';
import { VisibleEntry } from '../feed/visible-entry.ts';

/** The visible facts of a task from log sequence `from` up to the newest, with the sequence of the record each one stands in. Where the task was carried forward at `from`, those before it as well. */
export async function* readVisible(
  facts: FactLog,
  taskId: string,
  from: number,
): AsyncGenerator<{ entry: VisibleEntry; seq: number }> {
  for await (const { seq, record } of fromStart(facts.read(taskId, from))) {
    for (const fact of record.facts) if (isVisible(fact)) yield { entry: new VisibleEntry(fact, seq, false), seq };
  }
}
