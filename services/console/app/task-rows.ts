import { failureReason, isObject, isTerminal, type Metadata, stateWord, type Task } from '@hopline/a2a';
import { textOfParts } from './conversation.ts';
import { excerpt } from './plain-text.ts';

export type TaskRow = {
  id: string;
  contextId: string;
  state: string;
  /** Time of the newest status, ISO 8601. */
  at: string;
  question: string;
  /** The agent that was asked, or else the one by which the list was filtered; undefined if there is neither. */
  agents: readonly string[] | undefined;
  /** Why the task failed or waits; empty for others. */
  reason?: string;
  /** Milliseconds from the question to the end; undefined for an open task, and for one whose id has no time. */
  durationMs?: number | undefined;
  /** Tokens of the answer, if the agent reported them. */
  tokens?: number | undefined;
};

const QUESTION_CHARS_MAX = 160;
const REASON_CHARS_MAX = 200;

/** `agent`: the filter of the list. */
export function rowOf({ id, contextId, status, metadata, history = [] }: Task, agent = ''): TaskRow {
  const messages = history.filter(({ role }) => role === 'ROLE_USER');
  const reason = failureReason(status, metadata);
  const agents = [messages[0]?.metadata?.agent, agent].filter(name => typeof name === 'string' && name !== '') as string[];
  return {
    id,
    contextId,
    state: stateWord(status.state),
    at: status.timestamp ?? '',
    question: excerpt(textOfParts(messages[0]?.parts ?? []), QUESTION_CHARS_MAX),
    agents: agents.length > 0 ? [...new Set(agents)] : undefined,
    reason: /^(?:failed|rejected|input-required|auth-required)$/.test(stateWord(status.state))
      ? excerpt(reason, REASON_CHARS_MAX)
      : '',
    durationMs: isTerminal(status.state) ? durationOf(id, status.timestamp) : undefined,
    tokens: tokensOf(metadata),
  };
}

/** Ids of Hopline are UUIDs of version 7, which begin with the milliseconds of their making (RFC 9562). */
const UUID_7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function durationOf(id: string, endedAt = ''): number | undefined {
  const [, high, low] = UUID_7.exec(id) ?? [];
  const ms = Date.parse(endedAt) - Number.parseInt(`${high}${low}`, 16);
  return Number.isNaN(ms) || ms < 0 ? undefined : ms;
}

function tokensOf(metadata: Metadata | undefined): number | undefined {
  const usage = metadata?.usage;
  if (!isObject(usage)) return undefined;
  const tokens = usage.outputTokens ?? usage.output_tokens ?? usage.completion_tokens;
  return typeof tokens === 'number' ? tokens : undefined;
}

/** The shown list, and the tasks that wait behind "N new", so that rows do not move under the pointer. */
export type TaskList = { shown: readonly TaskRow[]; waiting: readonly TaskRow[] };

export const NO_TASKS: TaskList = { shown: [], waiting: [] };

/** Adds a later page, whose tasks are older. */
export function withPage({ shown, waiting }: TaskList, rows: readonly TaskRow[]): TaskList {
  const known = new Set([...shown, ...waiting].map(({ id }) => id));
  return { shown: [...shown, ...rows.filter(({ id }) => !known.has(id))], waiting };
}

/** Tasks that wait to be shown. If there may be more, the list starts again instead of showing them. */
export const WAITING_MAX = 1_000;

/** Adds newer tasks: shown ones are updated in place, the newest WAITING_MAX others wait. Returns the same list if nothing is new. */
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
  return { shown, waiting: newestFirst([...newest.values(), ...waiting]).slice(0, WAITING_MAX) };
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

/** Tasks of one request. */
export const PAGE_TASKS = 100;
/** Tasks after which a search stops, like `hopline list`; a button continues it. */
export const SEARCHED_TASKS_MAX = 10_000;
/**
 * Number of pages after which the search stops: a page without a match has no tasks, and for each page the server examines a limited number
 * of the user's own tasks.
 */
export const SEARCHED_PAGES_MAX = 100;

/** How far a list has been read: shown rows, tasks, requests. */
type Reading = { rows: number; read: number; pages: number };

/** How far a list is read before its user asks for more. */
export const FIRST_READ: Reading = { rows: PAGE_TASKS, read: SEARCHED_TASKS_MAX, pages: SEARCHED_PAGES_MAX };

/** How far it is read when its user asks for more. */
export function furtherThan({ rows, read, pages }: Reading): Reading {
  return { rows: rows + PAGE_TASKS, read: read + SEARCHED_TASKS_MAX, pages: pages + SEARCHED_PAGES_MAX };
}

/** Whether another page is requested, because none of the three limits has been reached. */
export function isBefore({ rows, read, pages }: Reading, wanted: Reading): boolean {
  return rows < wanted.rows && read < wanted.read && pages < wanted.pages;
}

const newestFirst = (rows: readonly TaskRow[]) => rows.toSorted((a, b) => b.at.localeCompare(a.at));

/** The filters that the page applies itself, because states and times of shown rows change. */
export type TaskFilter = {
  state: string;
  sinceMs: number;
  /** Part of an id: the server cannot search ids. */
  text: string;
};

/** Longest text that the server searches. */
const SERVER_TEXT_CHARS_MAX = 256;

/**
 * Splits a searched text: the server looks for words in questions, in the beginnings of answers and in reasons. The page compares a part of
 * an id.
 */
export function searchOf(text: string): { server: string; page: string } {
  const wanted = text.trim();
  const isId = /^[0-9a-f]{8}-?[0-9a-f-]*$/i.test(wanted);
  return isId ? { server: '', page: wanted } : { server: wanted.slice(0, SERVER_TEXT_CHARS_MAX), page: '' };
}

/** The side that searches. A server does not report how many tasks it has examined. Undefined for a list that is not searched. */
export function searcherOf(query: { state: string; agent: string; longer: string; text: string }): 'server' | 'page' | undefined {
  const { server, page } = searchOf(query.text);
  if (server !== '' || query.agent !== '' || query.longer !== '') return 'server';
  return query.state === 'open' || page !== '' ? 'page' : undefined;
}

/** Progress of a search by the server, which does not report how many tasks it has looked at. */
export function foundText(found: number, isWhole: boolean, isReading: boolean): string {
  const count = found.toLocaleString('en');
  if (isWhole) return `${count} found in all your tasks`;
  return isReading ? `${count} found so far` : `${count} found; the search stopped before your oldest tasks`;
}

/** Progress of a search, for people. `read`: tasks in this list. `total`: tasks that the server has. */
export function searchedText({ found, read, total }: { found: number; read: number; total: number }): string {
  const count = (of: number) => of.toLocaleString('en');
  if (read >= total) return `${count(found)} found in ${count(read)} ${read === 1 ? 'task' : 'tasks'}`;
  return `${count(found)} found; searched the newest ${count(read)} of ${count(total)} tasks`;
}

const OPEN_STATES = ['submitted', 'working', 'input-required', 'auth-required'];

/** The tasks of the list that a filter shows. `state`: a state, `open`, or empty for all. */
export function isShown(row: TaskRow, filter: TaskFilter, nowMs: number): boolean {
  const { state, at, id, contextId } = row;
  if (filter.state === 'open' ? !OPEN_STATES.includes(state) : filter.state !== '' && filter.state !== state) return false;
  if (filter.sinceMs > 0 && nowMs - Date.parse(at) > filter.sinceMs) return false;
  const text = filter.text.trim().toLowerCase();
  return text === '' || [id.toLowerCase(), contextId.toLowerCase()].some(one => one.includes(text));
}
