import { hash } from 'node:crypto';
import type { TaskState } from '@hopline/a2a';
import { type Layouts, type Owner, type Role, shardToken } from '@hopline/events';
import type { KeyValue } from './key-value.ts';
import type { ListedTask } from './listed-task.ts';
import type { TenantBytes } from './stored-span.ts';
import type { TaskIndexEntry } from './task-index-entry.ts';

/**
 * The index of tasks by owner, in the bucket of task lists. A list reads only the tasks of its caller, and a relay only the open tasks of
 * its shards, so neither depends on how many tasks the cluster stores. PROTOCOL.md 7.1.
 *
 * Keys: `<tenant>.<owner>.<shard>.` and then
 * - `t.<task id>`: the entry of a task that has not ended, or has ended in the last seconds
 * - `ended`: the newest ended tasks of the owner in this shard, and the pages that hold the older ones
 * - `ended.<n>`: such a page, which is written again only when tasks leave it
 *
 * The bucket also has the bytes of each tenant (TenantBytes).
 */
export type TaskListValue = TaskIndexEntry | EndedTasks | EndedPage | TenantBytes;

/**
 * The members of an ended task that a list needs. `at`: time of the end in epoch milliseconds. `seq`: log sequence of its newest record; 0
 * if unknown. Rows of earlier versions lack `listed`, so a list reads their tasks.
 */
export type EndedTask = [
  taskId: string,
  contextId: string,
  state: TaskState,
  at: number,
  generation: number,
  seq: number,
  listed?: ListedTask,
];

/** Oldest end first. */
export type EndedTasks = { v: 1; ended: EndedTask[]; pages: EndedPageRange[] };
export type EndedPage = { v: 1; ended: EndedTask[] };

/**
 * A page with its number, the number of its tasks, and the first and last times and sequences of them. `seqFrom` is the first known
 * sequence, and `seqTo` is 0 if any is unknown.
 */
export type EndedPageRange = { n: number; tasks: number; from: number; to: number; seqFrom: number; seqTo: number };

/** Number of tasks in the newest part of a list from which its oldest tasks become a page. */
export const ENDED_NEWEST_MAX = 256;
/**
 * UTF-16 units of their JSON. Limited, because each list reads this part of each shard and each move writes it. The limit is twice the size
 * of the list of pages, which is read with it. So both grow with the square root of the number of tasks, and 256 shards cost one caller
 * little more than 16.
 */
export const ENDED_NEWEST_UNITS_MIN = 4 * 1024;
export const ENDED_NEWEST_UNITS_MAX = 64 * 1024;
const UNITS_BY_PAGES_UNIT = 2;
/** Tasks that stay in it, and the share of the UTF-16 units. */
export const ENDED_NEWEST_KEPT = 64;
const ENDED_KEPT_SHARE = 0.25;
/** Maximum number of tasks that may be added at once, so that a page stays well below the largest message of NATS (1 MiB). */
export const ENDED_ADDED_MAX = 192;
/**
 * Maximum number of pages of an owner in one shard: a million tasks of one owner with 16 shards and rows of 400 bytes. Beyond that the
 * oldest page is removed from the lists, and pages of a list no longer have a total.
 */
export const ENDED_PAGES_MAX = 768;

const HASH_CHARS = 22;

/** 128 bits. Names are hashed, because they may have any characters, and because subjects appear in the logs and metrics of NATS. */
export function keyToken(...names: (string | null)[]): string {
  return hash('sha256', JSON.stringify(names), 'base64url').slice(0, HASH_CHARS);
}

/** The first two tokens of the keys of an owner's tasks of a role. A caller without a tenant is a tenant of its own. */
function listTokensOf(role: Role, owner: Owner = {}): { tenant: string; owner: string } {
  const { tenant, subject } = owner;
  const ownerToken = keyToken(role, tenant ?? null, subject ?? null);
  return { tenant: tenant === undefined ? ownerToken : keyToken(role, tenant), owner: ownerToken };
}

/** Prefix of the keys of an owner in a shard, without the last dot. */
export function listPrefixOf(taskId: string, { role, owner }: Pick<TaskIndexEntry, 'role' | 'owner'>, layouts: Layouts): string {
  const tokens = listTokensOf(role, owner);
  return `${tokens.tenant}.${tokens.owner}.${shardToken(layouts.shardOf(taskId))}`;
}

export function listKeyOf(taskId: string, entry: Pick<TaskIndexEntry, 'role' | 'owner'>, layouts: Layouts): string {
  return `${listPrefixOf(taskId, entry, layouts)}.t.${taskId}`;
}

/** Whether relays of a version without task lists may have written tasks of a shard. Those relays know only one layout. */
export const isInFirstLayout = (shard: number, { list }: Layouts): boolean => shard < list[0]!.shards;

/** All entries of tasks of a shard. */
export const shardEntriesFilter = (shard: number): string => `*.*.${shardToken(shard)}.t.*`;
/** The newest parts of all lists of a shard. */
export const shardListsFilter = (shard: number): string => `*.*.${shardToken(shard)}.ended`;
/** The entries of an owner's tasks, and the newest part of its lists. */
export function ownerFilters(role: Role, owner: Owner): string[] {
  const tokens = listTokensOf(role, owner);
  return ['t.*', 'ended'].map(rest => `${tokens.tenant}.${tokens.owner}.*.${rest}`);
}
/** The entries of tasks that have not ended: those of an owner or, with `isTenant`, of the owner's tenant. */
export function openFilter(role: Role, owner: Owner, isTenant = false): string {
  const tokens = listTokensOf(role, owner);
  return `${tokens.tenant}.${isTenant ? '*' : tokens.owner}.*.t.*`;
}
/** Whether all keys that a filter matches are in the lists of an owner's tasks, or its tenant's, of a role. */
export function isOwnerFilter(filter: string, role: Role, owner: Owner): boolean {
  const tokens = listTokensOf(role, owner);
  const [tenant, ownerToken] = filter.split('.');
  return tenant === tokens.tenant && (ownerToken === tokens.owner || (ownerToken === '*' && owner.tenant !== undefined));
}
export const endedKey = (prefix: string): string => `${prefix}.ended`;
export const endedPageKey = (prefix: string, n: number): string => `${prefix}.ended.${n}`;

/** The prefix, and the task id of an entry; undefined for the other keys. */
export function parseListKey(key: string): { prefix: string; taskId: string | undefined } {
  const [tenant, owner, shard, kind, rest] = key.split('.');
  return { prefix: `${tenant}.${owner}.${shard}`, taskId: kind === 't' ? rest : undefined };
}

/** The shard in a prefix that `listPrefixOf` made. */
export const shardOfList = (prefix: string): number => Number.parseInt(prefix.slice(prefix.lastIndexOf('.') + 1), 16);

export const isTaskEntry = (value: TaskListValue): value is TaskIndexEntry => 'contextId' in value;
export const isEndedTasks = (value: TaskListValue): value is EndedTasks => 'pages' in value;

export function endedTaskOf(taskId: string, { contextId, state, at, generation, seq = 0, listed }: TaskIndexEntry): EndedTask {
  return [taskId, contextId, state, at, generation, seq, ...(listed === undefined ? ([] as const) : ([listed] as const))];
}

/** Writes the entry of a task unconditionally, both by its id and in the lists of its owner. For writers with which no relay competes. */
export async function putTask(
  { tasks, taskLists, layouts }: { tasks: KeyValue<TaskIndexEntry>; taskLists: KeyValue<TaskListValue>; layouts: Layouts },
  taskId: string,
  entry: TaskIndexEntry,
): Promise<void> {
  await taskLists.put(listKeyOf(taskId, entry, layouts), entry);
  await tasks.put(taskId, entry);
}

/**
 * Adds ended tasks, at most ENDED_ADDED_MAX, to the newest part of a list; its oldest tasks become a page when it has more than ENDED_NEWEST_MAX or
 * too many units. If a task occurs twice, its later entry counts. Rejects with LogConflict if another process has changed the list in the meantime.
 */
export async function addEnded(lists: KeyValue<TaskListValue>, prefix: string, added: readonly EndedTask[]): Promise<void> {
  const found = await lists.get(endedKey(prefix));
  const known = found !== undefined && isEndedTasks(found.value) ? found.value : { ended: [], pages: [] };
  const byId = new Map<string, EndedTask>();
  for (const task of [...known.ended, ...added]) if ((byId.get(task[0])?.[4] ?? -1) < task[4]) byId.set(task[0], task);
  let ended = [...byId.values()].sort(compareEnds);
  let pages = known.pages;
  const unitsMax = newestUnitsMax(pages);
  if (ended.length > ENDED_NEWEST_MAX || JSON.stringify(ended).length > unitsMax) {
    const kept = keptOf(ended, unitsMax * ENDED_KEPT_SHARE);
    const page = ended.slice(0, -kept);
    ended = ended.slice(-kept);
    const range = rangeOf((pages.at(-1)?.n ?? 0) + 1, page);
    // The page is written before the list names it. If a process has written a page without naming it, its number is used again.
    await lists.put(endedPageKey(prefix, range.n), { v: 1, ended: page });
    pages = [...pages, range].slice(-ENDED_PAGES_MAX);
  }
  const value: EndedTasks = { v: 1, ended, pages };
  if (found === undefined) await lists.create(endedKey(prefix), value);
  else await lists.update(endedKey(prefix), value, found.revision);
}

/** Which tasks leave a list, and which pages may have one of them. */
type EndedRemoval = { isGone(task: EndedTask): boolean; mayBeIn(page: EndedPageRange): boolean };

/** Tasks whose facts retention has removed. `firstSeq`: the first sequence of the facts that the log still has for their shard. */
export function removedBefore(firstSeq: number): EndedRemoval {
  const isRemoved = (seq: number) => seq > 0 && seq < firstSeq;
  return { isGone: ([, , , , , seq]) => isRemoved(seq), mayBeIn: ({ seqFrom }) => isRemoved(seqFrom) };
}

/**
 * Removes ended tasks from a list and from its pages, and resolves with the number of tasks that it found there. Rejects with LogConflict if another
 * process has changed the list in the meantime; a repetition completes the removal.
 */
export async function removeEnded(
  lists: KeyValue<TaskListValue>,
  prefix: string,
  { isGone, mayBeIn }: EndedRemoval,
): Promise<number> {
  const key = endedKey(prefix);
  const found = await lists.get(key);
  if (found === undefined || !isEndedTasks(found.value)) return 0;
  const ended = found.value.ended.filter(task => !isGone(task));
  const pages: EndedPageRange[] = [];
  let removed = found.value.ended.length - ended.length;
  let isChanged = removed > 0;
  for (const range of found.value.pages) {
    const left = mayBeIn(range) ? await removeFromPage(lists, endedPageKey(prefix, range.n), isGone) : undefined;
    if (left === undefined) {
      pages.push(range);
      continue;
    }
    isChanged = true;
    removed += left.removed;
    if (left.tasks.length > 0) pages.push(rangeOf(range.n, left.tasks));
  }
  if (!isChanged) return 0;
  const revision = await lists.update(key, { v: 1, ended, pages }, found.revision);
  if (ended.length === 0 && pages.length === 0) await lists.purge(key, revision);
  return removed;
}

/** Undefined if all tasks of the page stay. A missing page has no tasks. */
async function removeFromPage(
  lists: KeyValue<TaskListValue>,
  key: string,
  isGone: EndedRemoval['isGone'],
): Promise<{ tasks: EndedTask[]; removed: number } | undefined> {
  const page = await lists.get(key);
  if (page === undefined || !('ended' in page.value)) return { tasks: [], removed: 0 };
  const tasks = page.value.ended.filter(task => !isGone(task));
  const removed = page.value.ended.length - tasks.length;
  if (removed === 0) return undefined;
  if (tasks.length === 0) await lists.purge(key, page.revision);
  else await lists.update(key, { v: 1, ended: tasks }, page.revision);
  return { tasks, removed };
}

function newestUnitsMax(pages: readonly EndedPageRange[]): number {
  const balanced = UNITS_BY_PAGES_UNIT * JSON.stringify(pages).length;
  return Math.min(ENDED_NEWEST_UNITS_MAX, Math.max(ENDED_NEWEST_UNITS_MIN, balanced));
}

/** Number of the newest tasks that stay in the newest part; at least one. */
function keptOf(ended: readonly EndedTask[], unitsMax: number): number {
  let units = 0;
  const fits = (task: EndedTask) => {
    units += JSON.stringify(task).length;
    return units <= unitsMax;
  };
  const newest = ended.slice(-ENDED_NEWEST_KEPT).reverse();
  const end = newest.findIndex(task => !fits(task));
  return Math.max(1, end === -1 ? newest.length : end);
}

function compareEnds(one: EndedTask, other: EndedTask): number {
  return one[3] - other[3] || (one[0] < other[0] ? -1 : 1);
}

function rangeOf(n: number, tasks: readonly EndedTask[]): EndedPageRange {
  const known = tasks.map(task => task[5]).filter(seq => seq > 0);
  const seqFrom = known.length === 0 ? 0 : Math.min(...known);
  const seqTo = known.length < tasks.length ? 0 : Math.max(...known);
  return { n, tasks: tasks.length, from: tasks[0]![3], to: tasks.at(-1)![3], seqFrom, seqTo };
}
