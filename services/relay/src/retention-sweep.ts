import { isInterrupted } from '@hopline/a2a';
import type { RelayInput, TaskAggregate } from '@hopline/events';
import type { Log, LogExtent, StreamExtent, TaskIndexEntry } from '@hopline/log';
import { type Logger, taskLogger } from '@hopline/telemetry';
import type { OpenTask } from './index-entry.ts';
import type { IndexWrites } from './index-writes.ts';
import type { ShardTasks } from './shard-tasks.ts';
import { changeOf, indexEntry } from './side-effects.ts';
import { copyForwardInput } from './task-deadlines.ts';

/** Time between two sweeps. */
const RETENTION_SWEEP_MS = 5_000;
/**
 * An open task is copied forward when only this share of the log's maximum bytes can still be written before its beginning is discarded.
 */
export const COPY_FORWARD_MARGIN = 0.25;
/**
 * Number of copies that one sweep may start. A copy stores all facts of its task again, which brings all other tasks closer to the limit.
 */
export const COPIES_PER_SWEEP_MAX = 64;
/** Index entries that one sweep may write again. */
export const ENTRIES_PER_SWEEP_MAX = 1_000;
/**
 * Number of tasks that one sweep may examine, beginning with those examined longest ago. Each costs a read, and thousands may wait for
 * their clients.
 */
export const EXAMINED_PER_SWEEP_MAX = 256;
/** An open task that has had no fact for this long is examined, once per this time. */
export const SILENT_MS_MIN = 60_000;

type RetentionSweepOptions = {
  log: Pick<Log, 'inputs' | 'facts' | 'work' | 'taskLists'>;
  index: Pick<IndexWrites, 'put'>;
  /** Open tasks of the shards of this relay. */
  tasks: Pick<ShardTasks, 'open' | 'rewrite'>;
  /** Whether this relay owns the shard of the task now. */
  owns: (taskId: string) => boolean;
  /** Whether an input, an append or a side effect of the task is in progress in this relay. */
  isBusy: (taskId: string) => boolean;
  /** The setting for copies by age; if absent, nothing is copied. */
  copyForwardAfterMs: number | undefined;
  /** Epoch milliseconds. */
  now: () => number;
  logger: Logger;
  sweepMs?: number;
  silentMs?: number;
};

/**
 * Protects open tasks from retention by bytes: copies their facts forward, writes their index entries again, and ends a task whose worker
 * has finished while its last inputs were removed before a relay read them. If an entry was lost together with its relay and the task's
 * inputs were removed, the entry is written again from the log.
 */
export class RetentionSweep {
  readonly #options: RetentionSweepOptions;
  readonly #timer: NodeJS.Timeout;
  /** `startSeq` of the start whose copy was requested, by task, so that a start that cannot be copied is not tried again in each sweep. */
  readonly #copied = new Map<string, number>();
  readonly #examinedAt = new Map<string, number>();
  #isSweeping = false;
  #isStopped = false;

  constructor(options: RetentionSweepOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#sweep(), options.sweepMs ?? RETENTION_SWEEP_MS);
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  async #sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    const { log, logger } = this.#options;
    try {
      const tasks = new Map(this.#options.tasks.open);
      for (const known of [this.#copied, this.#examinedAt])
        for (const taskId of known.keys()) if (!tasks.has(taskId)) known.delete(taskId);
      if (tasks.size > 0) {
        await this.#copyForward(tasks, await log.facts.extent());
        await this.#keepIndexed(tasks, await log.taskLists.extent());
        await this.#endLostWork(tasks, await log.inputs.extent());
      }
    } catch (error) {
      logger.warn({ err: error }, 'retention could not be checked');
    }
    this.#isSweeping = false;
  }

  async #copyForward(tasks: ReadonlyMap<string, OpenTask>, extents: LogExtent): Promise<void> {
    const { copyForwardAfterMs, now } = this.#options;
    if (copyForwardAfterMs === undefined || extents.fill <= 1 - COPY_FORWARD_MARGIN) return;
    const due = this.#owned(tasks, ({ entry: { startSeq, generation } }, taskId) => {
      const extent = extents.of(taskId);
      const below = copyForwardBelow(extent);
      // If the beginning of a task is gone, the task is not copied, because a copy would present a part as the whole task.
      const isOld = generation > 0 && startSeq >= extent.firstSeq && startSeq < below;
      return isOld && this.#copied.get(taskId) !== startSeq;
    });
    due.sort(([, one], [, other]) => one.entry.startSeq - other.entry.startSeq);
    for (const [taskId, { entry }] of due.slice(0, COPIES_PER_SWEEP_MAX)) {
      const { startSeq, startStoredAt = 0 } = entry;
      const { name, input } = copyForwardInput(startStoredAt);
      if (await this.#append(taskId, name, { ...input, idleSince: Math.round(now() - copyForwardAfterMs) }))
        this.#copied.set(taskId, startSeq);
    }
  }

  /**
   * Writes index entries of open tasks again, because deadlines and copies follow from them, and the index also removes its oldest entries.
   */
  async #keepIndexed(tasks: ReadonlyMap<string, OpenTask>, extent: StreamExtent): Promise<void> {
    const below = copyForwardBelow(extent);
    if (below <= extent.firstSeq) return;
    const due = this.#owned(tasks, ({ entry, revision }) => entry.generation > 0 && revision < below);
    for (const [taskId, task] of due.slice(0, ENTRIES_PER_SWEEP_MAX)) {
      if (this.#isStopped) return;
      await this.#options.tasks.rewrite(taskId, task);
    }
  }

  async #endLostWork(tasks: ReadonlyMap<string, OpenTask>, inputs: LogExtent): Promise<void> {
    const { isBusy, now, silentMs = SILENT_MS_MIN } = this.#options;
    const isSilent = (at: number) => now() - at >= silentMs;
    const mayLackInputs = ({ foldedSeq = 0 }: Pick<TaskIndexEntry, 'foldedSeq'>, taskId: string) =>
      foldedSeq + 1 < inputs.of(taskId).firstSeq;
    const examinedAt = (taskId: string) => this.#examinedAt.get(taskId) ?? 0;
    const suspects = this.#owned(
      tasks,
      ({ entry }, taskId) => mayLackInputs(entry, taskId) && isSilent(entry.at) && isSilent(examinedAt(taskId)),
    );
    suspects.sort(([one], [other]) => examinedAt(one) - examinedAt(other));
    for (const [taskId, { entry }] of suspects.slice(0, EXAMINED_PER_SWEEP_MAX)) {
      if (isBusy(taskId) || this.#isStopped) continue;
      this.#examinedAt.set(taskId, now());
      const newest = await this.#options.log.facts.last(taskId);
      if (newest === undefined) continue;
      const { aggregate } = newest.record;
      // The relay died after writing the record and before writing the index entry, and no input is left from which a successor would write
      // the entry.
      if (aggregate.generation > entry.generation) {
        await this.#options.index.put(taskId, indexEntry(changeOf(newest), aggregate.at));
        continue;
      }
      if (isInterrupted(aggregate.state) || !mayLackInputs(aggregate, taskId) || !isSilent(aggregate.at)) continue;
      const gone = await this.#goneWork(aggregate);
      if (gone === undefined) continue;
      const { turn } = aggregate;
      await this.#append(taskId, `work-gone:${turn}:${gone.call ?? ''}`, { kind: 'work-gone', turn, ...gone });
    }
  }

  /** Tasks of this relay's shards. `isDue` is checked first, because it does not depend on the shard. */
  #owned(tasks: ReadonlyMap<string, OpenTask>, isDue: (task: OpenTask, taskId: string) => boolean): [string, OpenTask][] {
    return [...tasks].filter(([taskId, task]) => isDue(task, taskId) && this.#options.owns(taskId));
  }

  /** The producer that should continue but has no work item. Called after the aggregate was read. */
  async #goneWork({ taskId, role, calls }: TaskAggregate): Promise<{ call?: string } | undefined> {
    const { work } = this.#options.log;
    if (!(await work.hasItem(role, taskId))) return {};
    for (const [call, { agent, state }] of Object.entries(calls))
      if (state === undefined && !(await work.hasItem(`agent.${agent}`, taskId))) return { call };
    return undefined;
  }

  async #append(taskId: string, name: string, input: RelayInput): Promise<boolean> {
    const { log, now, logger } = this.#options;
    if (this.#isStopped) return false;
    try {
      await log.inputs.append(taskId, { v: 1, at: Math.round(now()), from: 'relay', input }, { id: `${taskId}:${name}` });
      return true;
    } catch (error) {
      taskLogger(logger, taskId).warn({ err: error, reason: input.kind }, 'retention input could not be appended');
      return false;
    }
  }
}

/**
 * Open tasks that begin before this sequence are copied forward. Averaged over many records, the share of sequences equals the share of
 * bytes.
 */
export function copyForwardBelow({ firstSeq, lastSeq, fill }: StreamExtent): number {
  const written = lastSeq + 1 - firstSeq;
  const room = 1 - fill;
  return room >= COPY_FORWARD_MARGIN ? firstSeq : Math.round(firstSeq + (written * (COPY_FORWARD_MARGIN - room)) / fill);
}
