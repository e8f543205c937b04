import type { Owner } from '@hopline/events';
import {
  BoundedMap,
  changeSpans,
  joinSpans,
  type Log,
  type LogExtent,
  type StoredSpan,
  TENANT_BYTES_BEGUN,
  tenantBytesKey,
} from '@hopline/log';
import type { Logger } from '@hopline/telemetry';
import { retryConflicts } from './retry-conflicts.ts';

/** Pause before bytes that were just counted may be written. */
const LOOK_MS = 250;
/** Longest time before they are written. A relay that dies loses the counts of this time. */
const WRITE_MS = 10_000;
/** Share of the log's bytes with which a tenant is written without that wait. */
const STEP_SHARE = 1 / 256;
/** Entries that are written at the same time. */
const WRITES_AT_ONCE_MAX = 8;
/** Tasks whose entries are known without a hash. */
const KNOWN_TASKS_MAX = 16_384;
/** Age at which the extent of the log is read again, and at which the relay checks whether the tasks from before were entered. */
const EXTENT_MS = 5_000;
const BEGUN_MS = 10 * 60_000;

/** Bytes that are counted and not written. `sinceMs`: on the clock of `performance.now`. */
type Pending = { group: number; span: StoredSpan; sinceMs: number; tasks: Map<string, PendingTask> };
/** `fromSeq`: of the oldest record. */
type PendingTask = { fromSeq: number; bytes: number };

type TenantBytesWritesOptions = { log: Pick<Log, 'tasks' | 'taskLists' | 'facts' | 'layouts'>; logger: Logger };

/**
 * Adds the bytes of stored records to the entries of their tenants. All relays add to the same entries, so an entry has no owner and a takeover
 * changes nothing. In a log without a limit of bytes a tenant has no share, and nothing is written.
 */
export class TenantBytesWrites {
  readonly #options: TenantBytesWritesOptions;
  /** The entries of tasks: a record of a task in memory needs no hash. */
  readonly #knownTasks = new BoundedMap<string, { key: string | undefined; group: number }>(KNOWN_TASKS_MAX);
  /** By key. */
  readonly #pending = new Map<string, Pending>();
  #timer: NodeJS.Timeout | undefined;
  #extent: { value: LogExtent; readAtMs: number } | undefined;
  #begunAtMs = Number.NEGATIVE_INFINITY;
  #writing: Promise<boolean> | undefined;

  constructor(options: TenantBytesWritesOptions) {
    this.#options = options;
  }

  /** Counts a record of a task. */
  add(taskId: string, owner: Owner, { seq, bytes }: { seq: number; bytes: number }): void {
    const { key, group } = this.#knownTasks.get(taskId) ?? this.#know(taskId, owner);
    if (key === undefined) return;
    const tasks = new Map([[taskId, { fromSeq: seq, bytes }]]);
    this.#hold(key, { group, span: [seq, bytes], sinceMs: performance.now(), tasks });
    this.#timer ??= setTimeout(() => void this.#look(), LOOK_MS);
  }

  #know(taskId: string, owner: Owner): { key: string | undefined; group: number } {
    const group = this.#groupOf(taskId);
    const known = { key: tenantBytesKey(owner, group), group };
    this.#knownTasks.set(taskId, known);
    return known;
  }

  #groupOf(taskId: string): number {
    const { layouts } = this.#options.log;
    return layouts.groupOf(layouts.shardOf(taskId));
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
    if (this.#pending.size === 0) return true;
    try {
      const extent = await this.#readExtent();
      if (extent.bytesMax === undefined) {
        this.#pending.clear();
        return true;
      }
      await this.#begin();
      const [dueMs, bytesMin] = [performance.now() - waitedMs, extent.bytesMax * STEP_SHARE];
      const due = [...this.#pending].filter(([, { span, sinceMs }]) => span[1] >= bytesMin || sinceMs <= dueMs);
      for (let at = 0; at < due.length; at += WRITES_AT_ONCE_MAX)
        await Promise.all(due.slice(at, at + WRITES_AT_ONCE_MAX).map(([key, pending]) => this.#add(key, pending, extent)));
      return true;
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'bytes of tenants could not be counted');
      return false;
    }
  }

  async #look(): Promise<void> {
    this.#writing = this.write(WRITE_MS);
    const pauseMs = (await this.#writing) ? LOOK_MS : WRITE_MS;
    this.#timer = this.#pending.size === 0 ? undefined : setTimeout(() => void this.#look(), pauseMs);
  }

  #hold(key: string, more: Pending): void {
    const held = this.#pending.get(key);
    if (held === undefined) return void this.#pending.set(key, more);
    held.span = [Math.max(held.span[0], more.span[0]), held.span[1] + more.span[1]];
    held.sinceMs = Math.min(held.sinceMs, more.sinceMs);
    for (const [taskId, { fromSeq, bytes }] of more.tasks) {
      const task = held.tasks.get(taskId) ?? { fromSeq, bytes: 0 };
      held.tasks.set(taskId, { fromSeq: Math.min(task.fromSeq, fromSeq), bytes: task.bytes + bytes });
    }
  }

  async #add(key: string, pending: Pending, extent: LogExtent): Promise<void> {
    this.#pending.delete(key);
    const { log } = this.#options;
    const firstSeq = this.#ofGroup(extent, pending.group).firstSeq;
    const isStored = ([seq]: StoredSpan) => seq >= firstSeq;
    const add = () => changeSpans(log.taskLists, key, spans => joinSpans([...spans, pending.span].filter(isStored)));
    await retryConflicts(add).catch(error => {
      this.#hold(key, pending);
      throw error;
    });
  }

  #ofGroup(extent: LogExtent, group: number) {
    return extent.ofShard(this.#options.log.layouts.shardsOf(group)[0]!);
  }

  async #readExtent(): Promise<LogExtent> {
    const nowMs = performance.now();
    if (this.#extent !== undefined && nowMs - this.#extent.readAtMs < EXTENT_MS) return this.#extent.value;
    const value = await this.#options.log.facts.extent();
    this.#extent = { value, readAtMs: nowMs };
    return value;
  }

  /**
   * Enters the tasks that were stored before the relays counted, or all tasks after the bucket was lost. The entry that shows this expires with the
   * bucket's age, so the counts are made again from the tasks once in that time.
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

  /** Replaces the counts of records up to the end of the log by those of the tasks in the index. */
  async #enterStored(): Promise<void> {
    const { log } = this.#options;
    const extent = await log.facts.extent();
    const entered = new Map<string, { group: number; spans: StoredSpan[] }>();
    const reading = new AbortController();
    for await (const change of log.tasks.watch(reading.signal)) {
      if (change.type === 'ready') break;
      const { key: taskId, value } = change;
      if (value === undefined) continue;
      const group = this.#groupOf(taskId);
      const key = tenantBytesKey(value.owner, group);
      const { seq = 0, storedBytes = 0, startSeq } = value;
      const { firstSeq, lastSeq } = this.#ofGroup(extent, group);
      // A task that began after the end of the log was counted from its beginning.
      if (key === undefined || seq < firstSeq || startSeq > lastSeq) continue;
      // What this relay has not written is added afterwards.
      const pending = this.#pending.get(key)?.tasks.get(taskId);
      const bytes = storedBytes - (pending !== undefined && pending.fromSeq <= seq ? pending.bytes : 0);
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
