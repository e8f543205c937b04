import { failureReason, stateWord, type Task, textOf } from '@hopline/a2a';
import { textOfParts } from './conversation.ts';
import { excerpt } from './plain-text.ts';

export type TaskRow = {
  id: string;
  contextId: string;
  state: string;
  /** Time of the newest status, ISO 8601. */
  at: string;
  question: string;
  /** Text that a search reads: the messages of the user, and why the task failed or waits. In lower case. */
  searched: string;
  /** Agents whose artifacts the task has. Known only if artifacts were requested. */
  agents: readonly string[] | undefined;
};

const QUESTION_CHARS_MAX = 160;
/** Limits for one task, because the page keeps the texts of every task that was read. */
export const SEARCHED_CHARS_MAX = 10_000;

export function rowOf({ id, contextId, status, metadata, history = [], artifacts }: Task): TaskRow {
  const messages = history.filter(({ role }) => role === 'ROLE_USER');
  const texts = [failureReason(status, metadata), ...messages.map(({ parts }) => textOf(parts))];
  const agents = artifacts?.flatMap(({ metadata }) => (typeof metadata?.sourceAgent === 'string' ? [metadata.sourceAgent] : []));
  return {
    id,
    contextId,
    state: stateWord(status.state),
    at: status.timestamp ?? '',
    question: excerpt(textOfParts(messages[0]?.parts ?? []), QUESTION_CHARS_MAX),
    searched: texts.join('\n').slice(0, SEARCHED_CHARS_MAX).toLowerCase(),
    agents: agents && [...new Set(agents)],
  };
}

/** The shown list, and the tasks that wait behind "N new", so that rows do not move under the pointer. */
export type TaskList = { shown: readonly TaskRow[]; waiting: readonly TaskRow[] };

export const NO_TASKS: TaskList = { shown: [], waiting: [] };

/** Adds a later page, whose tasks are older. */
export function withPage({ shown, waiting }: TaskList, rows: readonly TaskRow[]): TaskList {
  const known = new Set([...shown, ...waiting].map(({ id }) => id));
  return { shown: [...shown, ...rows.filter(({ id }) => !known.has(id))], waiting };
}

/** Adds newer tasks: shown ones are updated in place, others wait. Returns the same list if nothing is new. */
export function withNews(list: TaskList, rows: readonly TaskRow[]): TaskList {
  const newest = new Map(rows.map(row => [row.id, row]));
  let hasChanged = false;
  const updated = (row: TaskRow) => {
    const news = newest.get(row.id);
    newest.delete(row.id);
    if (news === undefined || (news.at === row.at && news.state === row.state)) return row;
    hasChanged = true;
    return { ...news, agents: news.agents ?? row.agents };
  };
  const shown = list.shown.map(updated);
  const waiting = list.waiting.map(updated);
  if (!hasChanged && newest.size === 0) return list;
  return { shown, waiting: newestFirst([...newest.values(), ...waiting]) };
}

export function withWaitingShown({ shown, waiting }: TaskList): TaskList {
  return { shown: [...waiting, ...shown], waiting: [] };
}

/** Time of the newest status, for the next request; undefined if there is none. */
export function newestAt({ shown, waiting }: TaskList): string | undefined {
  return [...shown, ...waiting].reduce<string | undefined>(
    (newest, { at }) => (newest !== undefined && newest >= at ? newest : at),
    undefined,
  );
}

/** Shortest and longest interval between two requests for news. It is short while tasks change, and grows while nothing changes. */
export const NEWS_MS_MIN = 1_000;
export const NEWS_MS_MAX = 15_000;
/** Factor by which the interval grows with each request without news. */
const NEWS_SLOWDOWN = 1.5;
/** Largest share of the time that ingress spends on these requests: for each request it reads all open tasks of the user. */
const NEWS_SHARE_MAX = 0.1;

/** The next interval, after one of `waitMs` and an answer that took `tookMs`. */
export function nextNewsMs(waitMs: number, hasNews: boolean, tookMs: number): number {
  const pacedMs = hasNews ? NEWS_MS_MIN : waitMs * NEWS_SLOWDOWN;
  return Math.min(NEWS_MS_MAX, Math.max(pacedMs, tookMs / NEWS_SHARE_MAX));
}

/** Overlap of two requests: clocks of relays differ and the task index lags, so a change may be listed after a later one. */
const NEWS_OVERLAP_MS = 2_000;

/**
 * Start of the changes to request, ISO 8601. `answeredAtMs`: time of the server's last answer, by its own clock. Without it, a task whose relay
 * had a fast clock would hide every change until that time.
 */
export function newsSince(newest: string, answeredAtMs: number): string {
  const newestMs = Date.parse(newest);
  const sinceMs = Number.isNaN(newestMs) ? answeredAtMs : Math.min(newestMs, answeredAtMs);
  return new Date(sinceMs - NEWS_OVERLAP_MS).toISOString();
}

const newestFirst = (rows: readonly TaskRow[]) => rows.toSorted((a, b) => b.at.localeCompare(a.at));

export type TaskFilter = { state: string; agent: string; sinceMs: number; text: string };

/** Whether the page itself filters by something that A2A servers cannot filter by. It then reads until it has found enough tasks. */
export function isSearch({ state, agent, text }: Omit<TaskFilter, 'sinceMs'>): boolean {
  return state === 'open' || agent !== '' || text.trim() !== '';
}

/** Progress of a search, for people. `read`: tasks in this list. `total`: tasks that the server has. */
export function searchedText({ found, read, total }: { found: number; read: number; total: number }): string {
  const count = (of: number) => of.toLocaleString('en');
  if (read >= total) return `${count(found)} found in ${count(read)} ${read === 1 ? 'task' : 'tasks'}`;
  return `${count(found)} found; searched the newest ${count(read)} of ${count(total)} tasks`;
}

const OPEN_STATES = ['submitted', 'working', 'input-required', 'auth-required'];

/** The tasks of the list that a filter shows. `state`: a state, `open`, or empty for all. */
export function isShown({ state, at, agents, searched, id, contextId }: TaskRow, filter: TaskFilter, nowMs: number): boolean {
  if (filter.state === 'open' ? !OPEN_STATES.includes(state) : filter.state !== '' && filter.state !== state) return false;
  if (filter.agent !== '' && agents?.includes(filter.agent) !== true) return false;
  if (filter.sinceMs > 0 && nowMs - Date.parse(at) > filter.sinceMs) return false;
  const text = filter.text.trim().toLowerCase();
  return text === '' || [searched, id.toLowerCase(), contextId.toLowerCase()].some(one => one.includes(text));
}
