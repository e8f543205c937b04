import { isVisible } from '@hopline/events';
import type { FactLog } from '@hopline/log';
import { VisibleEntry } from '../feed/visible-entry.ts';

/** The visible facts of a task from log sequence `from` up to the newest, with the sequence of the record each one stands in. */
export async function* readVisible(
  facts: FactLog,
  taskId: string,
  from: number,
): AsyncGenerator<{ entry: VisibleEntry; seq: number }> {
  for await (const { seq, record } of facts.read(taskId, from)) {
    for (const fact of record.facts) if (isVisible(fact)) yield { entry: new VisibleEntry(fact, seq, false), seq };
  }
}
