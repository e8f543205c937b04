import type { Fact, FactRecord } from '@hopline/events';
import { project, type TaskView } from '@hopline/task';

/** What the log says became of a task: its facts by what they came from. */
export class StoredOutcome {
  view: TaskView | undefined;
  newest: FactRecord | undefined;
  /** Chunks that the coalescer made, and the tokens in them. */
  chunks = 0;
  tokens = 0;
  messages = 0;
  opened = 0;
  calls = 0;
  ended = 0;
  steps = 0;

  take(record: FactRecord): void {
    this.newest = record;
    for (const fact of record.facts) {
      this.view = project(this.view, fact);
      this.#count(fact);
    }
  }

  #count(fact: Fact): void {
    if (fact.kind === 'task.created' || fact.kind === 'message.received') this.messages += 1;
    if (fact.kind === 'lane.opened') this.opened += 1;
    if (fact.kind === 'call.started') this.calls += 1;
    if (fact.kind === 'call.ended') this.ended += 1;
    if (fact.kind === 'step.recorded') this.steps += 1;
    if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) return;
    this.chunks += 1;
    this.tokens += fact.chunk.count;
  }
}
