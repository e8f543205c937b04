import type { Task } from '@hopline/a2a';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Connection, UnreachableError } from './connection.ts';
import {
  NEWS_MS_MIN,
  NO_TASKS,
  newestAt,
  newsSince,
  nextNewsMs,
  PAGE_TASKS,
  rowOf,
  type TaskList,
  type TaskRow,
  WAITING_MAX,
  withNews,
  withPage,
  withWaitingShown,
} from './task-rows.ts';

/** If there are more pages of news than this, as after a day in the background, the list is loaded again. */
const NEWS_PAGES_MAX = 5;
const DURATION_MS: Record<string, number> = { '1s': 1_000, '10s': 10_000, '1m': 60_000, '10m': 600_000 };
export const TIME_MS: Record<string, number> = { '15m': 900_000, '1h': 3_600_000, '1d': 86_400_000, '7d': 604_800_000 };

type Page = { tasks: Task[]; nextPageToken?: string; totalSize?: number };
/** The filters that the server applies. */
export type ListQuery = { state: string; agent: string; time: string; longer: string };

function pagePath({ state, agent, time, longer }: ListQuery, text: string, more: Record<string, string>): string {
  const query = new URLSearchParams({ pageSize: String(PAGE_TASKS), historyLength: '1', ...more });
  if (text !== '') query.set('text', text);
  if (state !== '' && state !== 'open') query.set('status', `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`);
  if (agent !== '') query.set('agent', agent);
  const minDurationMs = DURATION_MS[longer];
  if (minDurationMs !== undefined) query.set('minDurationMs', String(minDurationMs));
  const sinceMs = TIME_MS[time];
  if (sinceMs !== undefined && more.statusTimestampAfter === undefined)
    query.set('statusTimestampAfter', new Date(Date.now() - sinceMs).toISOString());
  return `/api/tasks?${query}`;
}

/** Undefined for more than NEWS_PAGES_MAX pages. */
async function readNews(connection: Connection, path: string, agent: string): Promise<TaskRow[] | undefined> {
  const rows: TaskRow[] = [];
  let token = '';
  for (let pages = 0; pages < NEWS_PAGES_MAX; pages += 1) {
    const page = await connection.json<Page>(token === '' ? path : `${path}&pageToken=${encodeURIComponent(token)}`);
    rows.push(...page.tasks.map(task => rowOf(task, agent)));
    if (!page.nextPageToken) return rows;
    token = page.nextPageToken;
  }
  return undefined;
}

/** `text`: what the server searches. */
export function useTasks(connection: Connection, query: ListQuery, text: string) {
  const [list, current, update] = useLatest<TaskList>(NO_TASKS);
  const [{ total, pages }, setSeen] = useState({ total: 0, pages: 0 });
  const [fault, setFault] = useState('');
  const [isLoading, setLoading] = useState(true);
  const next = useRef<string | undefined>(undefined);
  const isBusy = useRef(false);
  /** When the list was last requested, by the server's clock, in epoch milliseconds. */
  const answeredAt = useRef(0);
  /** Whether the requested page is still wanted, because a page for other filters must not enter the list. */
  const isWanted = useRef<() => boolean>(() => true);
  const begin = useRef(() => {});
  const [hasMore, setMore] = useState(false);
  const load = async (isAlive: () => boolean, token?: string) => {
    isBusy.current = true;
    setLoading(true);
    let isReached = true;
    try {
      const page = await connection.json<Page>(pagePath(query, text, token === undefined ? {} : { pageToken: token }));
      if (!isAlive()) return;
      if (token === undefined) answeredAt.current = connection.answeredAtMs;
      next.current = page.nextPageToken || undefined;
      setMore(next.current !== undefined);
      update(
        withPage(
          current.current,
          page.tasks.map(task => rowOf(task, query.agent)),
        ),
      );
      setSeen(before => ({ total: page.totalSize ?? 0, pages: token === undefined ? 1 : before.pages + 1 }));
      setFault('');
    } catch (error) {
      isReached = !(error instanceof UnreachableError);
      if (isAlive() && isReached) setFault((error as Error).message);
    } finally {
      if (isAlive()) {
        isBusy.current = false;
        // If nothing answers, the list is still loading, and the next request for news continues it.
        if (isReached) setLoading(false);
      }
    }
  };
  useEffect(() => {
    let isCurrent = true;
    isWanted.current = () => isCurrent;
    const restart = () => {
      update(NO_TASKS);
      next.current = undefined;
      setMore(false);
      return load(() => isCurrent);
    };
    begin.current = () => void restart();
    begin.current();
    /** Whether there was any news. */
    const askForNews = async (): Promise<boolean> => {
      const since = newestAt(current.current);
      if (since === undefined) await load(() => isCurrent);
      else {
        // Open tasks can change to any state, so the news include every state.
        const path = pagePath({ ...query, state: '' }, text, { statusTimestampAfter: newsSince(since, answeredAt.current) });
        const rows = await readNews(connection, path, query.agent);
        if (!isCurrent) return false;
        answeredAt.current = connection.answeredAtMs;
        setFault('');
        setLoading(false);
        if (rows === undefined) await restart();
        else update(withNews(current.current, rows));
      }
      return newestAt(current.current) !== since;
    };
    const stop = pollWhileVisible(async () => {
      if (isBusy.current) return false;
      try {
        return await askForNews();
      } catch (error) {
        if (isCurrent && !(error instanceof UnreachableError)) setFault((error as Error).message);
        return false;
      }
    });
    return () => {
      isCurrent = false;
      stop();
    };
  }, [query.state, query.agent, query.time, query.longer, text]);
  const loadMore = () => {
    if (next.current !== undefined && !isBusy.current) void load(isWanted.current, next.current);
  };
  return {
    list,
    total,
    fault,
    isLoading,
    hasMore,
    pages,
    loadMore,
    showWaiting: () => {
      if (current.current.waiting.length < WAITING_MAX) update(withWaitingShown(current.current));
      else begin.current();
    },
  };
}

/** A state variable, and a ref to its newest value for code that runs between two renderings. */
function useLatest<T>(initial: T): [T, { readonly current: T }, (value: T) => void] {
  const [value, setValue] = useState(initial);
  const latest = useRef(initial);
  const set = (next: T) => {
    latest.current = next;
    setValue(() => next);
  };
  return [value, latest, set];
}

/**
 * A2A has no stream of all tasks, so the page polls for the newest ones: at once when it becomes visible again, and less often while
 * nothing changes. Returns a function that stops it.
 */
function pollWhileVisible(ask: () => Promise<boolean>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let [waitMs, isAsking, isStopped] = [NEWS_MS_MIN, false, false];
  const run = async () => {
    clearTimeout(timer);
    if (isAsking || isStopped || document.hidden) return;
    isAsking = true;
    const began = performance.now();
    const hasNews = await ask();
    isAsking = false;
    waitMs = nextNewsMs(waitMs, hasNews, performance.now() - began);
    if (!isStopped) timer = setTimeout(() => void run(), waitMs);
  };
  const onReturn = () => {
    waitMs = NEWS_MS_MIN;
    void run();
  };
  timer = setTimeout(() => void run(), waitMs);
  document.addEventListener('visibilitychange', onReturn);
  addEventListener('focus', onReturn);
  return () => {
    isStopped = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', onReturn);
    removeEventListener('focus', onReturn);
  };
}
