import { A2AError, isTerminal } from '@hopline/a2a';
import { isSameOwner, type Owner, type Role } from '@hopline/events';
import {
  BoundedMap,
  ENDED_PAGES_MAX,
  type EndedPageRange,
  type EndedTask,
  endedPageKey,
  isEndedTasks,
  isInFirstLayout,
  isTaskEntry,
  type Log,
  type LogExtent,
  ownerFilters,
  parseListKey,
  RecentExtent,
  type StoredFacts,
  type StreamExtent,
  shardOfList,
  type TaskIndexEntry,
} from '@hopline/log';
import { fromLog } from './log-faults.ts';
import { comparePositions, type IndexedTask, type IndexPosition, TaskIndex } from './task-index.ts';

/** How long the leases of the relays count as current. */
const LEASES_MS = 2_000;
/** Number of tasks that this process has seen and that the lists may not show yet. The newest ones are kept. */
const NOTED_MAX = 1_000;
/**
 * Number of pages in the first read. If the caller has more lists than that, one page of each list is read, because the pages of all shards
 * overlap in time. Each further read takes twice as many.
 */
const PAGES_AT_FIRST = 16;
const PAGES_AT_ONCE_MAX = 512;

type TaskListsOptions = {
  log: Pick<Log, 'tasks' | 'taskLists' | 'facts' | 'leases' | 'layouts'>;
  role: Role;
  /** How long a list that needs the index by task id waits until it has loaded. */
  readyMsMax: number;
  onLost(error: unknown): void;
};

type Entry = Omit<TaskIndexEntry, 'startSeq'>;
type UnreadPage = EndedPageRange & { key: string };

/**
 * The tasks of one role by owner. Each list request reads only the caller's tasks, so this process keeps nothing that grows with the number
 * of stored tasks. While a relay of an earlier version owns a shard, the lists lack its tasks. In that time the index by task id is
 * followed, as in that version.
 */
export class TaskLists {
  readonly #options: TaskListsOptions;
  readonly #noted = new BoundedMap<string, IndexedTask>(NOTED_MAX);
  /** Tasks that the log has since removed are noticed when they are read. */
  readonly #extent: RecentExtent;
  #areListed: { value: boolean; readAtMs: number } | undefined;
  #byId: TaskIndex | undefined;

  constructor(options: TaskListsOptions) {
    this.#options = options;
    this.#extent = new RecentExtent(options.log.facts);
  }

  /** Adds a state of a task that this process has seen, which may be newer than the lists. */
  note(taskId: string, { role, generation, at, contextId, state, owner }: Entry): void {
    if (role !== this.#options.role || (this.#noted.get(taskId)?.generation ?? -1) >= generation) return;
    this.#noted.set(taskId, { taskId, at, contextId, state, generation, owner });
  }

  /** The tasks of the caller now. Throws UNAVAILABLE. */
  async of(caller: Owner): Promise<OwnedTasks> {
    try {
      const { role, log } = this.#options;
      const [areListed, extent, entries] = await Promise.all([
        this.#checkListed(),
        this.#extent.get(),
        log.taskLists.match(ownerFilters(role, caller), caller),
      ]);
      const owned = new OwnedTasks(log, caller, extent);
      for (const { key, value } of entries) {
        const { prefix, taskId } = parseListKey(key);
        if (taskId !== undefined && isTaskEntry(value)) owned.addEntry(taskId, value);
        else if (isEndedTasks(value)) owned.addEnded(prefix, value.ended, value.pages);
      }
      if (!areListed) for (const task of await this.#tasksById(caller)) owned.note(task);
      for (const task of this.#noted.values()) {
        if (!isSameOwner(task.owner, caller)) continue;
        if ((owned.get(task.taskId)?.generation ?? -1) >= task.generation) this.#noted.delete(task.taskId);
        else owned.note(task);
      }
      return owned;
    } catch (thrown) {
      throw thrown instanceof A2AError ? thrown : fromLog(thrown);
    }
  }

  /** The task is gone, so what this process has seen of it no longer counts. */
  forget(taskId: string): void {
    this.#noted.delete(taskId);
  }

  close(): void {
    this.#byId?.close();
  }

  /**
   * Whether each shard has an owner that writes the lists. A shard without a lease has no tasks yet, and in later layouts every owner
   * writes them.
   */
  async #checkListed(): Promise<boolean> {
    const nowMs = performance.now();
    if (this.#areListed !== undefined && nowMs - this.#areListed.readAtMs < LEASES_MS) return this.#areListed.value;
    const leases = await this.#options.log.leases.match(['shard.*']);
    const { layouts } = this.#options.log;
    const isListed = (key: string, listed: boolean) => listed || !isInFirstLayout(Number(key.slice('shard.'.length)), layouts);
    const value = leases.every(lease => isListed(lease.key, lease.value.listed === true));
    this.#areListed = { value, readAtMs: nowMs };
    if (value) {
      this.#byId?.close();
      this.#byId = undefined;
    }
    return value;
  }

  async #tasksById(caller: Owner): Promise<IndexedTask[]> {
    const { log, role, readyMsMax, onLost } = this.#options;
    this.#byId ??= new TaskIndex({ tasks: log.tasks, role, readyMsMax, onLost });
    const byId = this.#byId;
    await byId.ready();
    return byId.newestFirst(({ owner }) => isSameOwner(owner, caller));
  }
}

/**
 * The tasks of one caller during one request: the open tasks, the newest ended tasks, and pages of older tasks that are read when needed.
 */
export class OwnedTasks {
  /** Newest record of each task that this request has read, by task id; absent for a task without records. */
  readonly records = new Map<string, StoredFacts>();
  readonly #recordsRead = new Set<string>();
  readonly #log: TaskListsOptions['log'];
  readonly #caller: Owner;
  readonly #extent: LogExtent;
  readonly #tasks = new Map<string, IndexedTask>();
  /** Newest end first. */
  #unread: UnreadPage[] = [];
  /**
   * False if the log has removed some tasks of a page that was not read, or if a list may have dropped its oldest page (ENDED_PAGES_MAX).
   */
  #isTotalKnown = true;
  #pagesAtOnce = PAGES_AT_FIRST;
  #listsWithPages = 0;

  constructor(log: TaskListsOptions['log'], caller: Owner, extent: LogExtent) {
    this.#log = log;
    this.#caller = caller;
    this.#extent = extent;
  }

  get(taskId: string): IndexedTask | undefined {
    return this.#tasks.get(taskId);
  }

  /** Takes a state of a task, unless a later one is known. */
  note(task: IndexedTask): void {
    if ((this.#tasks.get(task.taskId)?.generation ?? -1) < task.generation) this.#tasks.set(task.taskId, task);
  }

  forget(taskId: string): void {
    this.#tasks.delete(taskId);
  }

  /** Reads the newest records of tasks, except those that were read before, all in one request. Throws UNAVAILABLE. */
  async readRecords(tasks: readonly IndexedTask[]): Promise<void> {
    const unread = new Set<string>();
    for (const { taskId } of tasks) if (!this.#recordsRead.has(taskId)) unread.add(taskId);
    if (unread.size === 0) return;
    const read = await this.#log.facts.lastOfEach([...unread]).catch(thrown => {
      throw fromLog(thrown);
    });
    for (const taskId of unread) this.#recordsRead.add(taskId);
    for (const [taskId, record] of read) this.records.set(taskId, record);
  }

  addEntry(taskId: string, { contextId, state, at, generation, owner, seq = 0, listed }: TaskIndexEntry): void {
    // The records of an open task are copied forward, so its entry may name a record that is gone.
    if (!isTerminal(state) || !isRemoved(seq, this.#extent.of(taskId)))
      this.note({ taskId, contextId, state, at, generation, owner, ...(listed && { listed }) });
  }

  addEnded(prefix: string, ended: readonly EndedTask[], pages: readonly EndedPageRange[]): void {
    const extent = this.#extent.ofShard(shardOfList(prefix));
    for (const [taskId, contextId, state, at, generation, seq, listed] of ended)
      if (!isRemoved(seq, extent))
        this.note({ taskId, contextId, state, at, generation, owner: this.#caller, ...(listed && { listed }) });
    if (pages.length > 0) this.#pagesAtOnce = Math.max(this.#pagesAtOnce, ++this.#listsWithPages);
    if (pages.length >= ENDED_PAGES_MAX) this.#isTotalKnown = false;
    for (const page of pages) {
      if (isRemoved(page.seqTo, extent)) continue;
      if (isRemoved(page.seqFrom, extent)) this.#isTotalKnown = false;
      this.#unread.push({ ...page, key: endedPageKey(prefix, page.n) });
    }
    this.#unread.sort((one, other) => other.to - one.to);
  }

  /** Matching tasks that were read, newest status first. */
  newestFirst(matches: (task: IndexedTask) => boolean): IndexedTask[] {
    return [...this.#tasks.values()].filter(matches).sort((one, other) => comparePositions(other, one));
  }

  /** Whether every task of the caller was read. */
  get isWhole(): boolean {
    return this.#unread.length === 0;
  }

  /** Number of tasks of the caller; undefined while it is not known. `matches`: as counted among the tasks that were read. */
  total(matches: (task: IndexedTask) => boolean): number | undefined {
    if (!this.#isTotalKnown) return undefined;
    const read = this.newestFirst(matches).length;
    return this.#unread.reduce((sum, { tasks }) => sum + tasks, read);
  }

  /**
   * Matching tasks after a position, newest status first: at least `count` of them, if there are that many. Reads pages until it has
   * enough, at most `tasksMax` of their tasks. `unreadTo`: time of the newest end in a page that was not read. All tasks after it are among
   * those returned.
   */
  async select(
    matches: (task: IndexedTask) => boolean,
    { after, sinceMs }: { after: IndexPosition | undefined; sinceMs: number },
    { count, tasksMax }: { count: number; tasksMax: number },
  ): Promise<{ found: IndexedTask[]; unreadTo: number | undefined }> {
    for (let read = 0; ; ) {
      const needed = this.#unread.filter(({ from, to }) => to >= sinceMs && (after === undefined || from <= after.at));
      const unreadTo = needed[0]?.to;
      const isSure = (task: IndexedTask) =>
        (unreadTo === undefined || task.at > unreadTo) && (after === undefined || comparePositions(task, after) < 0);
      const found = this.newestFirst(task => matches(task) && isSure(task));
      if (found.length >= count || unreadTo === undefined || read >= tasksMax) return { found, unreadTo };
      read += await this.#readPages(needed.slice(0, this.#pagesAtOnce));
      this.#pagesAtOnce = Math.min(PAGES_AT_ONCE_MAX, this.#pagesAtOnce * 2);
    }
  }

  async #readPages(pages: readonly UnreadPage[]): Promise<number> {
    const keys = new Set(pages.map(({ key }) => key));
    let tasks = 0;
    for (const { key, value } of await this.#log.taskLists.match([...keys], this.#caller)) {
      if (!('ended' in value)) continue;
      tasks += value.ended.length;
      this.addEnded(parseListKey(key).prefix, value.ended, []);
    }
    this.#unread = this.#unread.filter(({ key }) => !keys.has(key));
    // Removed pages count as read, so that a list always comes to an end.
    return Math.max(tasks, 1);
  }
}

function isRemoved(seq: number, { firstSeq }: StreamExtent): boolean {
  return seq > 0 && seq < firstSeq;
}
