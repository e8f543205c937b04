import { type Artifact, isTerminal, type Part } from '@hopline/a2a';
import { type ArtifactUpdated, type Fact, isVisible, shardOf } from '@hopline/events';
import {
  BoundedMap,
  LaterVersion,
  LISTED_TEXT_BYTES_MAX,
  type ListedTask,
  type Log,
  LogUnavailable,
  listedTaskOf,
  readTask,
} from '@hopline/log';
import { TaskViewBuilder } from '@hopline/task';
import { type Logger, taskLogger } from '@hopline/telemetry';
import type { StoredChange } from './pipeline-context.ts';

/** Number of open tasks whose facts are kept. Those that changed longest ago are dropped first, and are read from the log when they end. */
const TASKS_MAX = 4_096;
/** UTF-16 units of JSON of the facts kept for one task. A task with more is read from the log when it ends. */
const TASK_UNITS_MAX = 16 * 1024;

/**
 * The same limit for a task that is read from the log when it ends. A larger task gets no row; lists read it instead, because its row would be truncated
 * anyway.
 */
export const READ_UNITS_MAX = 4 * 1024 * 1024;

type Kept = {
  builder: TaskViewBuilder;
  generation: number;
  units: number;
  /** UTF-16 units of the text that is kept of each artifact. */
  textChars: Map<string, number>;
};

/**
 * The parts of this relay's tasks that lists show, gathered from the facts that it stores, so that the row of a task can be written at its
 * end without reading the log. Only the beginnings of artifact texts are kept.
 */
export class ShownTasks {
  readonly #log: Pick<Log, 'facts' | 'layouts'>;
  readonly #logger: Logger;
  readonly #kept = new BoundedMap<string, Kept>(TASKS_MAX);

  constructor(log: Pick<Log, 'facts' | 'layouts'>, logger: Logger) {
    this.#log = log;
    this.#logger = logger;
  }

  /** Takes the facts of a stored step. Called once for each, in order. */
  stored({ facts, aggregate }: Pick<StoredChange, 'facts' | 'aggregate'>): void {
    const { taskId } = aggregate;
    if (facts.length === 0) return;
    const isFirst = facts[0]!.kind === 'task.created';
    const kept = isFirst ? emptyKept() : this.#kept.get(taskId);
    if (kept === undefined) return;
    this.#kept.delete(taskId);
    // Another relay has written in between.
    if (kept.generation + facts.filter(isVisible).length !== aggregate.generation) return;
    kept.generation = aggregate.generation;
    for (const fact of facts) keep(kept, fact);
    if (kept.units > TASK_UNITS_MAX) return;
    this.#kept.set(taskId, kept);
  }

  /**
   * The part of an ended task that lists show. `at`: the time in its row. Undefined if the log has lost its beginning or does not answer,
   * or if the row would be too large. Lists then read the task.
   */
  async ended({ aggregate }: Pick<StoredChange, 'aggregate'>, at: number): Promise<ListedTask | undefined> {
    const { taskId, generation } = aggregate;
    const kept = this.#kept.get(taskId);
    this.#kept.delete(taskId);
    if (kept?.generation === generation) return listedTaskOf(kept.builder.view!.task, at);
    try {
      const newest = await this.#log.facts.last(taskId);
      if (newest === undefined || !isTerminal(newest.record.aggregate.state)) return undefined;
      const read = emptyKept();
      for await (const { record } of readTask(this.#log.facts, newest)) {
        if (read.builder.view === undefined && record.facts[0]?.kind !== 'task.created') return undefined;
        for (const fact of record.facts) keep(read, fact);
        if (read.units > READ_UNITS_MAX) return undefined;
      }
      return read.builder.view && listedTaskOf(read.builder.view.task, at);
    } catch (error) {
      // The end of the task is stored, and its entry must be stored as well, so any other error is only logged.
      if (!(error instanceof LogUnavailable || error instanceof LaterVersion))
        taskLogger(this.#logger, taskId, aggregate.owner).error(
          { err: error },
          'the row of a task could not be built: lists read the task',
        );
      return undefined;
    }
  }

  /** The shard has another owner. */
  forget(shard: number): void {
    for (const taskId of this.#kept.keys()) if (shardOf(taskId, this.#log.layouts) === shard) this.#kept.delete(taskId);
  }
}

function emptyKept(): Kept {
  return { builder: new TaskViewBuilder(), generation: 0, units: 0, textChars: new Map() };
}

function keep(kept: Kept, fact: Fact): void {
  switch (fact.kind) {
    case 'artifact.updated':
      keepText(kept, fact);
      return;
    case 'task.created':
    case 'message.received':
    case 'status.changed':
      kept.units += JSON.stringify(fact).length;
      kept.builder.addFact(fact);
  }
}

/** An artifact with its agent, without text beyond the beginning and without parts of other kinds. */
function keepText(kept: Kept, fact: ArtifactUpdated): void {
  const { artifact, append } = fact.event.artifactUpdate;
  const { artifactId, name, metadata } = artifact;
  const known = kept.textChars.get(artifactId);
  const chars = append === true ? (known ?? 0) : 0;
  if (known !== undefined && append === true && chars >= LISTED_TEXT_BYTES_MAX) return;
  let text = '';
  for (const part of artifact.parts) text += part.text ?? '';
  text = text.slice(0, LISTED_TEXT_BYTES_MAX - chars);
  kept.textChars.set(artifactId, chars + text.length);
  const parts: Part[] = text === '' ? [] : [{ text }];
  const sourceAgent = metadata?.sourceAgent;
  const agent = typeof sourceAgent === 'string' && { metadata: { sourceAgent } };
  const beginning: Artifact = { artifactId, ...(name !== undefined && { name }), parts, ...agent };
  kept.units += JSON.stringify(beginning).length;
  const artifactUpdate = { ...fact.event.artifactUpdate, artifact: beginning };
  kept.builder.addFact({ ...fact, event: { artifactUpdate } });
}
