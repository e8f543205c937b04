import type { Task } from '@hopline/a2a';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useAgents } from './agents.ts';
import { Composer } from './composer.tsx';
import { type Connection, type ConsoleInfo, UnreachableError } from './connection.ts';
import { ageText, visibleText } from './plain-text.ts';
import { navigate, setQuery, taskPath } from './routes.ts';
import { send } from './send-message.ts';
import { StatePill } from './state-pill.tsx';
import {
  isSearch,
  isShown,
  NEWS_MS_MIN,
  NO_TASKS,
  newestAt,
  newsSince,
  nextNewsMs,
  rowOf,
  searchedText,
  type TaskFilter,
  type TaskList,
  type TaskRow,
  withNews,
  withPage,
  withWaitingShown,
} from './task-rows.ts';
import { VirtualRows } from './virtual-rows.tsx';

const PAGE_TASKS = 100;
/** How many of a task's newest messages a text search reads. */
const SEARCHED_MESSAGES_MAX = 20;
/** Tasks after which a search stops, like `hopline list`; a button continues it. */
const SEARCHED_TASKS_MAX = 10_000;
/** If there are more pages of news than this, as after a day in the background, the list is loaded again. */
const NEWS_PAGES_MAX = 5;
/** Interval at which the ages of visible tasks are rendered. */
const AGES_MS = 2_000;
const ROW_PX = 58;

const STATES = ['', 'open', 'working', 'input-required', 'completed', 'failed', 'canceled', 'rejected'] as const;
const TIMES = [
  ['', 'Any time'],
  ['15m', '15 minutes'],
  ['1h', '1 hour'],
  ['1d', '24 hours'],
  ['7d', '7 days'],
] as const;
const TIME_MS: Record<string, number> = { '15m': 900_000, '1h': 3_600_000, '1d': 86_400_000, '7d': 604_800_000 };

type Page = { tasks: Task[]; nextPageToken?: string; totalSize?: number };
type Query = { state: string; agent: string; time: string; text: string };

function initialQuery(): Query {
  const of = (name: string) => new URLSearchParams(location.search).get(name) ?? '';
  return { state: of('state'), agent: of('agent'), time: of('time'), text: of('q') };
}

export function TaskListPage({ connection, info }: { connection: Connection; info: ConsoleInfo }) {
  const [query, setFilters] = useState(initialQuery);
  const { list, total, fault, isLoading, hasMore, loadMore, showWaiting } = useTasks(connection, query);
  const nowMs = useNow();
  const agents = useAgents(connection);
  const set = (change: Partial<Query>) => setFilters({ ...query, ...change });
  useEffect(() => setQuery({ state: query.state, agent: query.agent, time: query.time, q: query.text }), [query]);
  const filter: TaskFilter = { state: query.state, agent: query.agent, sinceMs: TIME_MS[query.time] ?? 0, text: query.text };
  const rows = useMemo(() => list.shown.filter(row => isShown(row, filter, nowMs)), [list.shown, query, nowMs]);
  const waiting = list.waiting.filter(row => isShown(row, filter, nowMs)).length;
  const read = list.shown.length;
  const searches = isSearch(query);
  const [wanted, setWanted] = useState({ rows: PAGE_TASKS, read: SEARCHED_TASKS_MAX });
  useEffect(() => setWanted({ rows: PAGE_TASKS, read: SEARCHED_TASKS_MAX }), [query]);
  const wantMore = () => setWanted({ rows: rows.length + PAGE_TASKS, read: read + SEARCHED_TASKS_MAX });
  const isReadingOn = hasMore && fault === '' && rows.length < wanted.rows && read < wanted.read;
  useEffect(() => {
    if (isReadingOn && !isLoading) loadMore();
  }, [isReadingOn, isLoading, list]);
  const isReading = isLoading || isReadingOn;
  const progress = { found: rows.length, read, total: hasMore ? Math.max(total, read + 1) : read };
  return (
    <>
      {info.writes && (
        <Composer
          label="Ask a question"
          button="Ask"
          agents={agents}
          hasCards
          onSend={async (text, agent) => {
            const id = await send(connection, { parts: [{ text }], target: { kind: 'new' }, agent });
            if (id !== undefined) navigate(taskPath(id));
          }}
        />
      )}
      <div class="toolbar">
        <h1>Tasks</h1>
        <fieldset class="segments">
          <legend class="visually-hidden">State</legend>
          {STATES.map(state => (
            <label key={state}>
              <input type="radio" name="state" checked={query.state === state} onChange={() => set({ state })} />
              <span>{state === '' ? 'all' : state}</span>
            </label>
          ))}
        </fieldset>
        <select aria-label="Agent" value={query.agent} onChange={event => set({ agent: event.currentTarget.value })}>
          <option value="">Any agent</option>
          {agents.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <select aria-label="Time" value={query.time} onChange={event => set({ time: event.currentTarget.value })}>
          {TIMES.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <input
          type="search"
          placeholder="Search text or id"
          aria-label="Search all tasks by text or id"
          value={query.text}
          onInput={event => set({ text: event.currentTarget.value })}
        />
      </div>
      {fault !== '' && (
        <p class="notice notice-error" role="alert">
          {fault}
        </p>
      )}
      <div class="list">
        {waiting > 0 && (
          <button type="button" class="news" onClick={showWaiting}>
            {waiting} new
          </button>
        )}
        {rows.length === 0 && !isReading && fault === '' ? (
          <NoRows query={query} {...progress} />
        ) : (
          <VirtualRows
            label="Tasks"
            count={rows.length}
            rowHeight={ROW_PX}
            keyOf={index => rows[index]!.id}
            row={index => <Row row={rows[index]!} nowMs={nowMs} />}
            onEnd={wantMore}
          />
        )}
      </div>
      <footer class="muted small list-foot" aria-live="polite">
        {isLoading && read === 0
          ? 'loading …'
          : searches
            ? searchedText(progress) + (isReading ? ' …' : '')
            : `${rows.length} shown of ${Math.max(total, read)}`}
        {searches && hasMore && !isReading && fault === '' && (
          <button type="button" class="button button-quiet" onClick={wantMore}>
            Search older tasks
          </button>
        )}
      </footer>
    </>
  );
}

function NoRows({ query, ...progress }: { query: Query; found: number; read: number; total: number }) {
  if (!isSearch(query) && query.state === '' && query.time === '')
    return (
      <div class="empty">
        <strong>No tasks yet</strong>
        <p class="muted">The first one appears here by itself.</p>
      </div>
    );
  return (
    <div class="empty">
      <strong>No task fits these filters</strong>
      <p class="muted">
        {isSearch(query) && `${searchedText(progress)}. `}
        {query.text.trim() !== '' && 'A search covers ids, user messages and failure reasons. '}
        Choose another state, agent or time.
      </p>
    </div>
  );
}

function Row({ row, nowMs }: { row: TaskRow; nowMs: number }) {
  return (
    <a class="task-row" href={taskPath(row.id)}>
      <StatePill state={row.state} />
      <span class="task-row-text">
        <bdi class="task-row-question">{row.question === '' ? 'no text' : row.question}</bdi>
        <span class="muted small">
          <code>{visibleText(row.id)}</code>
          {row.agents?.map(agent => (
            <span key={agent} class="tag">
              <bdi>{visibleText(agent)}</bdi>
            </span>
          ))}
        </span>
      </span>
      <time class="muted small" dateTime={row.at} title={row.at}>
        {ageText(row.at, nowMs)}
      </time>
    </a>
  );
}

function pagePath({ state, agent, time, text }: Query, more: Record<string, string>): string {
  const historyLength = text.trim() === '' ? 1 : SEARCHED_MESSAGES_MAX;
  const query = new URLSearchParams({ pageSize: String(PAGE_TASKS), historyLength: String(historyLength), ...more });
  if (state !== '' && state !== 'open') query.set('status', `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`);
  // Only artifacts name the agents of a task.
  if (agent !== '') query.set('includeArtifacts', 'true');
  const sinceMs = TIME_MS[time];
  if (sinceMs !== undefined && more.statusTimestampAfter === undefined)
    query.set('statusTimestampAfter', new Date(Date.now() - sinceMs).toISOString());
  return `/api/tasks?${query}`;
}

/** Undefined for more than NEWS_PAGES_MAX pages. */
async function readNews(connection: Connection, path: string): Promise<TaskRow[] | undefined> {
  const rows: TaskRow[] = [];
  let token = '';
  for (let pages = 0; pages < NEWS_PAGES_MAX; pages += 1) {
    const page = await connection.json<Page>(token === '' ? path : `${path}&pageToken=${encodeURIComponent(token)}`);
    rows.push(...page.tasks.map(rowOf));
    if (!page.nextPageToken) return rows;
    token = page.nextPageToken;
  }
  return undefined;
}

function useTasks(connection: Connection, query: Query) {
  const [list, current, update] = useLatest<TaskList>(NO_TASKS);
  const [total, setTotal] = useState(0);
  const [fault, setFault] = useState('');
  const [isLoading, setLoading] = useState(true);
  const next = useRef<string | undefined>(undefined);
  const isBusy = useRef(false);
  /** When the list was last requested, by the server's clock, in epoch milliseconds. */
  const answeredAt = useRef(0);
  /** Whether the requested page is still wanted: a page for other filters must not enter the list. */
  const isWanted = useRef<() => boolean>(() => true);
  const [hasMore, setMore] = useState(false);
  const load = async (isAlive: () => boolean, token?: string) => {
    isBusy.current = true;
    setLoading(true);
    let isReached = true;
    try {
      const page = await connection.json<Page>(pagePath(query, token === undefined ? {} : { pageToken: token }));
      if (!isAlive()) return;
      if (token === undefined) answeredAt.current = connection.answeredAtMs;
      next.current = page.nextPageToken || undefined;
      setMore(next.current !== undefined);
      update(withPage(current.current, page.tasks.map(rowOf)));
      setTotal(page.totalSize ?? 0);
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
    void restart();
    /** Whether there was any news. */
    const askForNews = async (): Promise<boolean> => {
      const since = newestAt(current.current);
      if (since === undefined) await load(() => isCurrent);
      else {
        // Open tasks can change to any state, so the news include every state.
        const path = pagePath({ ...query, state: '' }, { statusTimestampAfter: newsSince(since, answeredAt.current) });
        const rows = await readNews(connection, path);
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
    // A text search needs more messages of each task; the page itself compares the text.
  }, [query.state, query.agent, query.time, query.text.trim() === '']);
  const loadMore = () => {
    if (next.current !== undefined && !isBusy.current) void load(isWanted.current, next.current);
  };
  return {
    list,
    total,
    fault,
    isLoading,
    hasMore,
    loadMore,
    showWaiting: () => update(withWaitingShown(current.current)),
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

function useNow(): number {
  const [nowMs, setNow] = useState(Date.now);
  useEffect(() => {
    const ages = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, AGES_MS);
    return () => clearInterval(ages);
  }, []);
  return nowMs;
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
