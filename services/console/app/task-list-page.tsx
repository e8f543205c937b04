import { duration } from '@hopline/task-audit/waterfall';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Agent, useAgents } from './agents.ts';
import { Composer } from './composer.tsx';
import type { Connection, ConsoleInfo } from './connection.ts';
import { Menu } from './menu.tsx';
import { ageText, visibleText } from './plain-text.ts';
import { linkTo, navigate, queryMember, setQuery, taskPath } from './routes.ts';
import { COMMON_VIEWS, removeView, savedViews, saveView } from './saved-views.ts';
import { send } from './send-message.ts';
import { StatePill } from './state-pill.tsx';
import {
  FIRST_READ,
  foundText,
  furtherThan,
  isBefore,
  isShown,
  searchedText,
  searcherOf,
  searchOf,
  type TaskFilter,
  type TaskRow,
  WAITING_MAX,
} from './task-rows.ts';
import { type ListQuery, TIME_MS, useTasks } from './use-tasks.ts';
import { VirtualRows } from './virtual-rows.tsx';

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
/** Rest time after which a typed text is searched. */
const TYPING_MS = 250;

type Query = ListQuery & { text: string };

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
  const rested = useRested(query.text, TYPING_MS);
  const search = searchOf(rested);
  const { list, total, fault, isLoading, hasMore, pages, loadMore, showWaiting } = useTasks(connection, query, search.server);
  const searchField = useRef<HTMLInputElement>(null);
  useListKeys(searchField);
  const nowMs = useNow();
  const agents = useAgents(connection);
  const set = (change: Partial<Query>) => setFilters({ ...query, ...change });
  const { state, agent, time, longer, text } = query;
  useEffect(() => setQuery({ state, agent, time, longer, q: text }), [query]);
  const filter: TaskFilter = { state, sinceMs: TIME_MS[time] ?? 0, text: search.page };
  const rows = useMemo(() => list.shown.filter(row => isShown(row, filter, nowMs)), [list.shown, query, search.page, nowMs]);
  const waiting = list.waiting.filter(row => isShown(row, filter, nowMs)).length;
  const read = list.shown.length;
  const searcher = searcherOf({ ...query, text: rested });
  const searches = searcher !== undefined;
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
    searcher === 'server'
      ? foundText(rows.length, !hasMore, isReading)
      : searchedText({ found: rows.length, read, total: hasMore ? Math.max(total, read + 1) : read });
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
            {waiting}
            {list.waiting.length < WAITING_MAX ? '' : '+'} new
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
      <Views query={query} set={set} />
    </div>
  );
}

const storage = () => localStorage;

/** Filters under a name: those of every page, and those that were saved in this browser. */
function Views({ query, set }: Pick<FiltersProps, 'query' | 'set'>) {
  const [saved, setSaved] = useState(() => savedViews(storage));
  const save = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const form = event.currentTarget;
    const name = String(new FormData(form).get('name')).trim();
    const { state, agent, time, longer, text } = query;
    if (name !== '') setSaved(saveView(storage, { name, filters: { state, agent, time, longer, text } }));
    form.reset();
  };
  return (
    <Menu label="Views" text="Views">
      {[...COMMON_VIEWS, ...saved].map(({ name, filters }, index) => (
        <span key={`${index} ${name}`} class="view">
          <button type="button" class="menu-item" onClick={() => set(filters)}>
            <bdi>{visibleText(name)}</bdi>
          </button>
          {index >= COMMON_VIEWS.length && (
            <button
              type="button"
              class="menu-item"
              aria-label={`Remove the view ${visibleText(name)}`}
              onClick={() => setSaved(removeView(storage, name))}
            >
              ×
            </button>
          )}
        </span>
      ))}
      <form class="view-form" onSubmit={save}>
        <input
          name="name"
          placeholder="Name of these filters"
          aria-label="Name of these filters"
          maxLength={60}
          autocomplete="off"
        />
        <button type="submit" class="button">
          Save
        </button>
      </form>
    </Menu>
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
