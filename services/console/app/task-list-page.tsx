import type { Task } from '@hopline/a2a';
import { duration } from '@hopline/task-audit/waterfall';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Agent, useAgents } from './agents.ts';
import { Composer } from './composer.tsx';
import { type Connection, type ConsoleInfo, UnreachableError } from './connection.ts';
import { ageText, visibleText } from './plain-text.ts';
import { linkTo, navigate, queryMember, setQuery, taskPath } from './routes.ts';
import { send } from './send-message.ts';
import { StatePill } from './state-pill.tsx';
import {
  FIRST_READ,
  foundText,
  furtherThan,
  isBefore,
  isSearch,
  isShown,
  NEWS_MS_MIN,
  NO_TASKS,
  newestAt,
  newsSince,
  nextNewsMs,
  PAGE_TASKS,
  rowOf,
  searchedText,
  searchOf,
  type TaskFilter,
  type TaskList,
  type TaskRow,
  withNews,
  withPage,
  withWaitingShown,
} from './task-rows.ts';
import { VirtualRows } from './virtual-rows.tsx';

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
const DURATIONS = [
  ['', 'Any duration'],
  ['1s', 'over 1 second'],
  ['10s', 'over 10 seconds'],
  ['1m', 'over 1 minute'],
  ['10m', 'over 10 minutes'],
] as const;
const DURATION_MS: Record<string, number> = { '1s': 1_000, '10s': 10_000, '1m': 60_000, '10m': 600_000 };
/** Rest time after which a typed text is searched. */
const TYPING_MS = 250;
const TIME_MS: Record<string, number> = { '15m': 900_000, '1h': 3_600_000, '1d': 86_400_000, '7d': 604_800_000 };

type Page = { tasks: Task[]; nextPageToken?: string; totalSize?: number };
type Query = { state: string; agent: string; time: string; longer: string; text: string };

function initialQuery(): Query {
  return {
    state: queryMember('state'),
    agent: queryMember('agent'),
    time: queryMember('time'),
    longer: queryMember('longer'),
    text: queryMember('q'),
  };
}

export function TaskListPage({ connection, info }: { connection: Connection; info: ConsoleInfo }) {
  const [query, setFilters] = useState(initialQuery);
  const search = searchOf(useRested(query.text, TYPING_MS));
  const { list, total, fault, isLoading, hasMore, pages, loadMore, showWaiting } = useTasks(connection, query, search.server);
  const searchField = useRef<HTMLInputElement>(null);
  useListKeys(searchField);
  const nowMs = useNow();
  const agents = useAgents(connection);
  const set = (change: Partial<Query>) => setFilters({ ...query, ...change });
  const { state, agent, time, longer, text } = query;
  useEffect(() => setQuery({ state, agent, time, longer, q: text }), [query]);
  const filter: TaskFilter = { state, agent, sinceMs: TIME_MS[time] ?? 0, longerMs: DURATION_MS[longer] ?? 0, text: search.page };
  const rows = useMemo(() => list.shown.filter(row => isShown(row, filter, nowMs)), [list.shown, query, search.page, nowMs]);
  const waiting = list.waiting.filter(row => isShown(row, filter, nowMs)).length;
  const read = list.shown.length;
  const searches = isSearch({ ...filter, text });
  const reached = { rows: rows.length, read, pages };
  const [wanted, setWanted] = useState(FIRST_READ);
  useEffect(() => setWanted(FIRST_READ), [query, search.server]);
  const wantMore = () => setWanted(furtherThan(reached));
  const isReadingOn = hasMore && fault === '' && isBefore(reached, wanted);
  useEffect(() => {
    if (isReadingOn && !isLoading) loadMore();
  }, [isReadingOn, isLoading, list]);
  const isReading = isLoading || isReadingOn;
  const progress =
    search.server === ''
      ? searchedText({ found: rows.length, read, total: hasMore ? Math.max(total, read + 1) : read })
      : foundText(rows.length, !hasMore, isReading);
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
      <Filters query={query} set={set} agents={agents} searchField={searchField} />
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
          <NoRows query={query} searches={searches} progress={progress} />
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
            ? progress + (isReading ? ' …' : '')
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

type FiltersProps = {
  query: Query;
  set: (change: Partial<Query>) => void;
  agents: readonly Agent[];
  searchField: { current: HTMLInputElement | null };
};

function Filters({ query, set, agents, searchField }: FiltersProps) {
  return (
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
      <select aria-label="Duration" value={query.longer} onChange={event => set({ longer: event.currentTarget.value })}>
        {DURATIONS.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      <input
        ref={searchField}
        type="search"
        placeholder="Search text, reason or id  ( / )"
        aria-label="Search all tasks by text, reason or id"
        value={query.text}
        onInput={event => set({ text: event.currentTarget.value })}
      />
    </div>
  );
}

function NoRows({ query, searches, progress }: { query: Query; searches: boolean; progress: string }) {
  if (!searches && query.state === '' && query.time === '')
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
        {searches && `${progress}. `}
        {query.text.trim() !== '' && 'A search covers questions, the beginnings of answers, reasons and ids. '}
        Choose another state, agent, time or duration.
      </p>
    </div>
  );
}

function Row({ row, nowMs }: { row: TaskRow; nowMs: number }) {
  const { id, state, question, agents, reason = '', durationMs, tokens, at } = row;
  const hasFailed = state === 'failed' || state === 'rejected';
  return (
    <a class={`task-row ${hasFailed ? 'task-row-failed' : ''}`} href={linkTo(taskPath(id))}>
      <StatePill state={state} />
      <span class="task-row-text">
        <bdi class="task-row-question">{question === '' ? 'no text' : question}</bdi>
        <span class="muted small">
          {reason !== '' && <bdi class={hasFailed ? 'bad task-row-reason' : 'task-row-reason'}>{reason}</bdi>}
          {reason === '' && <code>{visibleText(id)}</code>}
        </span>
      </span>
      <span class="task-row-agents small only-wide">
        {agents?.map(agent => (
          <span key={agent} class="tag">
            <bdi>{visibleText(agent)}</bdi>
          </span>
        ))}
      </span>
      <span class="task-row-figure small only-wide" title="Time from the question to the end">
        {durationMs === undefined ? '' : duration(durationMs)}
      </span>
      <span class="task-row-figure small only-wide" title="Tokens of the answer, if the agent reported them">
        {tokens === undefined ? '' : `${tokens.toLocaleString('en')} tokens`}
      </span>
      <time class="muted small" dateTime={at} title={at}>
        {ageText(at, nowMs)}
      </time>
    </a>
  );
}

/** A value that has not changed for a while. */
function useRested<T>(value: T, ms: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    if (value === rested) return;
    const timer = setTimeout(() => setRested(() => value), ms);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}

/** `/` leads to the search; `j` and `k` to the next and the previous task, which Enter opens. */
function useListKeys(search: { readonly current: HTMLInputElement | null }): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key, ctrlKey, altKey, metaKey } = event;
      const target = event.target as HTMLElement;
      if (ctrlKey || altKey || metaKey || target.matches?.('input, textarea, select')) return;
      if (key === '/') {
        event.preventDefault();
        search.current?.focus();
      }
      if (key !== 'j' && key !== 'k') return;
      const rows = [...document.querySelectorAll<HTMLElement>('.task-row')];
      const at = rows.indexOf(document.activeElement as HTMLElement);
      rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + (key === 'j' ? 1 : -1)))]?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

function pagePath({ state, agent, time }: Query, text: string, more: Record<string, string>): string {
  const query = new URLSearchParams({ pageSize: String(PAGE_TASKS), historyLength: '1', ...more });
  if (text !== '') query.set('text', text);
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

/** `text`: what the server searches. */
function useTasks(connection: Connection, query: Query, text: string) {
  const [list, current, update] = useLatest<TaskList>(NO_TASKS);
  const [{ total, pages }, setSeen] = useState({ total: 0, pages: 0 });
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
      const page = await connection.json<Page>(pagePath(query, text, token === undefined ? {} : { pageToken: token }));
      if (!isAlive()) return;
      if (token === undefined) answeredAt.current = connection.answeredAtMs;
      next.current = page.nextPageToken || undefined;
      setMore(next.current !== undefined);
      update(withPage(current.current, page.tasks.map(rowOf)));
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
    void restart();
    /** Whether there was any news. */
    const askForNews = async (): Promise<boolean> => {
      const since = newestAt(current.current);
      if (since === undefined) await load(() => isCurrent);
      else {
        // Open tasks can change to any state, so the news include every state.
        const path = pagePath({ ...query, state: '' }, text, { statusTimestampAfter: newsSince(since, answeredAt.current) });
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
  }, [query.state, query.agent, query.time, text]);
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
