import type { Owner } from '@hopline/events';
import {
  BoundedMap,
  changeSpans,
  joinSpans,
  type Log,
  type LogExtent,
  RecentExtent,
  type StoredSpan,
  TENANT_BYTES_BEGUN,
  tenantBytesKey,
} from '@hopline/log';
import type { Logger } from '@hopline/telemetry';
import { retryConflicts } from './retry-conflicts.ts';

/** Minimum pause before bytes that were just counted are written. */
const LOOK_MS = 250;
/** Longest time before they are written. A relay that dies loses the counts of this time. */
const WRITE_MS = 10_000;
/** Share of the log's bytes at which a tenant is written without that wait. */
const STEP_SHARE = 1 / 256;
/** Entries that are written at the same time. */
const WRITES_AT_ONCE_MAX = 8;
/** Interval at which the relay checks again whether the older tasks were entered. */
const BEGUN_MS = 10 * 60_000;

/**
 * Number of tasks whose bytes wait while the entries cannot be written. The bytes of a further task replace those of the task that began to
 * wait first.
 */
const TASKS_MAX = 20_000;

/**
 * The bytes of a task that are counted but not written. `fromSeq`, `seq`: sequences of its oldest and newest record. `sinceMs`: on the
 * clock of `performance.now`.
 */
type Unwritten = { key: string; group: number; fromSeq: number; seq: number; bytes: number; sinceMs: number };

type TenantBytesWritesOptions = { log: Pick<Log, 'tasks' | 'taskLists' | 'facts' | 'layouts'>; logger: Logger };

/**
 * Adds the bytes of stored records to the entries of their tenants. All relays add to the same entries, so an entry has no owner, and a
 * takeover changes nothing. If the log has no limit of bytes, tenants have no shares, and nothing is written.
 */
export class TenantBytesWrites {
  readonly #options: TenantBytesWritesOptions;
  /** By task, so that a record costs only one lookup. */
  readonly #unwritten = new BoundedMap<string, Unwritten>(TASKS_MAX);
  #timer: NodeJS.Timeout | undefined;
  readonly #extent: RecentExtent;
  #begunAtMs = Number.NEGATIVE_INFINITY;
  #writing: Promise<boolean> | undefined;

  constructor(options: TenantBytesWritesOptions) {
    this.#options = options;
    this.#extent = new RecentExtent(options.log.facts);
  }

  /** Counts a record of a task. */
  add(taskId: string, owner: Owner | undefined, { seq, bytes }: { seq: number; bytes: number }): void {
    // Without authentication no record is counted.
    if (owner === undefined) return;
    const known = this.#unwritten.get(taskId);
    if (known !== undefined) {
      known.seq = seq;
      known.bytes += bytes;
      return;
    }
    const { layouts } = this.#options.log;
    const group = layouts.groupOf(layouts.shardOf(taskId));
    const key = tenantBytesKey(owner, group);
    if (key === undefined) return;
    this.#unwritten.set(taskId, { key, group, fromSeq: seq, seq, bytes, sinceMs: performance.now() });
    this.#timer ??= setTimeout(() => void this.#look(), LOOK_MS);
  }

  /** Writes what is counted. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#writing;
    await this.write(0);
    clearTimeout(this.#timer);
  }

  /** Writes the entries that have many bytes, or that have waited for `waitedMs`. Resolves with false if that failed. */
  async write(waitedMs: number): Promise<boolean> {
    if (this.#unwritten.size === 0) return true;
    try {
      const extent = await this.#extent.get();
      if (extent.bytesMax === undefined) {
        this.#unwritten.clear();
        return true;
      }
      await this.#begin();
      const [dueMs, bytesMin] = [performance.now() - waitedMs, extent.bytesMax * STEP_SHARE];
      const byKey = Map.groupBy(this.#unwritten, ([, { key }]) => key);
      const due = [...byKey].filter(
        ([, tasks]) => bytesOf(tasks) >= bytesMin || tasks.some(([, { sinceMs }]) => sinceMs <= dueMs),
      );
      for (let at = 0; at < due.length; at += WRITES_AT_ONCE_MAX)
        await Promise.all(due.slice(at, at + WRITES_AT_ONCE_MAX).map(([key, tasks]) => this.#add(key, tasks, extent)));
      return true;
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'bytes of tenants could not be counted');
      return false;
    }
  }

  async #look(): Promise<void> {
    this.#writing = this.write(WRITE_MS);
    const pauseMs = (await this.#writing) ? LOOK_MS : WRITE_MS;
    this.#timer = this.#unwritten.size === 0 ? undefined : setTimeout(() => void this.#look(), pauseMs);
  }

  async #add(key: string, tasks: [taskId: string, Unwritten][], extent: LogExtent): Promise<void> {
    for (const [taskId] of tasks) this.#unwritten.delete(taskId);
    const { firstSeq } = this.#ofGroup(extent, tasks[0]![1].group);
    const span: StoredSpan = [Math.max(...tasks.map(([, { seq }]) => seq)), bytesOf(tasks)];
    const isStored = ([seq]: StoredSpan) => seq >= firstSeq;
    const add = () => changeSpans(this.#options.log.taskLists, key, spans => joinSpans([...spans, span].filter(isStored)));
    await retryConflicts(add).catch(error => {
      for (const [taskId, task] of tasks) this.#keep(taskId, task);
      throw error;
    });
  }

  /** Counts the bytes that could not be written together with those stored in the meantime. */
  #keep(taskId: string, task: Unwritten): void {
    const later = this.#unwritten.get(taskId);
    this.#unwritten.set(taskId, { ...task, seq: later?.seq ?? task.seq, bytes: task.bytes + (later?.bytes ?? 0) });
  }

  #ofGroup(extent: LogExtent, group: number) {
    return extent.ofShard(this.#options.log.layouts.shardsOf(group)[0]!);
  }

  /**
   * Enters the tasks that were stored before the relays counted, or all tasks after the bucket was lost. The entry that marks this as done
   * expires after the bucket's age limit, so once in that time the counts are made again from the tasks.
   */
  async #begin(): Promise<void> {
    const { taskLists } = this.#options.log;
    const nowMs = performance.now();
    if (nowMs - this.#begunAtMs < BEGUN_MS) return;
    if ((await taskLists.get(TENANT_BYTES_BEGUN)) === undefined) {
      await this.#enterStored();
      await taskLists.put(TENANT_BYTES_BEGUN, { v: 1, stored: [] });
    }
    this.#begunAtMs = nowMs;
  }

  /** Replaces the counts of records up to the end of the log with those of the tasks in the index. */
  async #enterStored(): Promise<void> {
    const { log } = this.#options;
    const extent = await log.facts.extent();
    const entered = new Map<string, { group: number; spans: StoredSpan[] }>();
    const reading = new AbortController();
    for await (const change of log.tasks.watch(reading.signal)) {
      if (change.type === 'ready') break;
      const { key: taskId, value } = change;
      if (value === undefined) continue;
      const group = log.layouts.groupOf(log.layouts.shardOf(taskId));
      const key = tenantBytesKey(value.owner, group);
      const { seq = 0, storedBytes = 0, startSeq } = value;
      const { firstSeq, lastSeq } = this.#ofGroup(extent, group);
      // A task that began after that end of the log was counted from its beginning.
      if (key === undefined || seq < firstSeq || startSeq > lastSeq) continue;
      // Bytes that this relay has not yet written are added afterwards.
      const unwritten = this.#unwritten.get(taskId);
      const bytes = storedBytes - (unwritten !== undefined && unwritten.fromSeq <= seq ? unwritten.bytes : 0);
      if (bytes <= 0) continue;
      const known = entered.get(key) ?? { group, spans: [] };
      entered.set(key, { group, spans: joinSpans(known.spans, [[Math.min(seq, lastSeq), bytes]]) });
    }
    reading.abort();
    for (const [key, { group, spans }] of entered) {
      const isLater = ([seq]: StoredSpan) => seq > this.#ofGroup(extent, group).lastSeq;
      await retryConflicts(() => changeSpans(log.taskLists, key, known => joinSpans(spans, known.filter(isLater))));
    }
  }
}

function bytesOf(tasks: readonly [taskId: string, Unwritten][]): number {
  return tasks.reduce((sum, [, { bytes }]) => sum + bytes, 0);
}
