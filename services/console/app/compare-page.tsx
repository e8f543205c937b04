import type { TaskDiff, TaskPart } from '@hopline/replay/diff-tasks';
import type { TaskReport } from '@hopline/task-audit';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { differingTexts, measureRows, type TimeRow, timeRows } from './compare-rows.ts';
import { type Connection, refusalOf, UnreachableError } from './connection.ts';
import { segmentsOf } from './conversation.ts';
import { Text } from './conversation-view.tsx';
import { loadPart } from './load-part.ts';
import { memo } from './memo.ts';
import { visibleText } from './plain-text.ts';
import type { TaskFacts } from './read-task-facts.ts';
import { comparePath, linkTo, navigate, taskPath } from './routes.ts';
import { TaskChoice } from './task-choice.tsx';

/** Wait before another try, and number of tries: ingress runs only a few exports at a time. */
const RETRY_MS = 1_000;
const RETRIES_MAX = 10;

/** Two tasks side by side: the comparison of `hopline diff`, with the texts. */
export function ComparePage({ a, b, connection }: { a: string; b: string; connection: Connection }) {
  return (
    <div class="compare">
      <div class="toolbar">
        <h1>Compare</h1>
        <TaskChoices a={a} b={b} connection={connection} />
      </div>
      {a !== '' && b !== '' && <Comparison a={a} b={b} connection={connection} />}
    </div>
  );
}

function TaskChoices({ a, b, connection }: { a: string; b: string; connection: Connection }) {
  const [[first, second], set] = useState<readonly [string, string]>([a, b]);
  return (
    <form
      class="compare-form"
      onSubmit={event => {
        event.preventDefault();
        navigate(comparePath(first, second));
      }}
    >
      <TaskChoice name="A" id={a} connection={connection} onChoose={id => set([id, second])} />
      <TaskChoice name="B" id={b} connection={connection} onChoose={id => set([first, id])} />
      <button type="submit" class="button" disabled={first === '' || second === ''}>
        Compare
      </button>
    </form>
  );
}

function Comparison({ a, b, connection }: { a: string; b: string; connection: Connection }) {
  const { diff, fault } = useDiff(a, b, connection);
  if (fault !== '')
    return (
      <p class="notice notice-error" role="alert">
        {visibleText(fault)}
      </p>
    );
  if (diff === undefined) return <p class="muted pad">Reading both tasks …</p>;
  const same = diff.parts.filter(part => part.a === part.b);
  return (
    <div class="compare-result">
      <p class="compare-verdict" role="status">
        <strong class={diff.same ? 'good' : 'bad'}>
          {diff.same ? 'same' : `${diff.differences.length} ${diff.differences.length === 1 ? 'part differs' : 'parts differ'}`}
        </strong>
        <span class="muted small">Ids, times and chunk boundaries are not compared.</span>
      </p>
      <section class="card table-card">
        <table>
          <thead>
            <tr>
              <th>
                <span class="visually-hidden">figure</span>
              </th>
              <th class="number">
                <a href={linkTo(taskPath(a))}>A</a>
              </th>
              <th class="number">
                <a href={linkTo(taskPath(b))}>B</a>
              </th>
              <th class="number">from A to B</th>
            </tr>
          </thead>
          <tbody>
            {measureRows(diff).map(row => (
              <tr key={row.name}>
                <td>
                  <bdi>{visibleText(row.name)}</bdi>
                </td>
                <td class="number">{row.a}</td>
                <td class="number">{row.b}</td>
                <td class="number">{row.change}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <Times a={a} b={b} connection={connection} />
      {diff.differences.map(part => (
        <Difference key={part.name} part={part} />
      ))}
      {same.map(part => (
        <SamePart key={part.name} part={part} />
      ))}
    </div>
  );
}

/** Both tasks side by side in time: A above B in each row. Missing where a log no longer has one of them. */
function Times({ a, b, connection }: { a: string; b: string; connection: Connection }) {
  const rows = useTimes(a, b, connection);
  if (rows.length === 0) return null;
  return (
    <section class="card compare-part" aria-label="Times">
      <h2>
        Times <span class="muted">A above B, from the first input of each</span>
      </h2>
      <ul class="times">
        {rows.map(({ label, a: one, b: other }) => (
          <li key={label}>
            <bdi class="cut small">{visibleText(label.replaceAll('_', ' '))}</bdi>
            <span class="times-track">
              {[one, other].map((bars, index) =>
                bars.map(({ from, to, text }) => (
                  <span
                    key={`${index} ${from}`}
                    class={`times-bar times-${index === 0 ? 'a' : 'b'}`}
                    style={{ left: `${100 * from}%`, width: `${100 * (to - from)}%` }}
                    title={`${index === 0 ? 'A' : 'B'}: ${text}`}
                  />
                )),
              )}
            </span>
            <span class="muted small times-sums">
              {one.map(({ text }) => text).join(', ') || '–'} / {other.map(({ text }) => text).join(', ') || '–'}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function useTimes(a: string, b: string, connection: Connection): readonly TimeRow[] {
  const [rows, setRows] = useState<readonly TimeRow[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    const read = (id: string) =>
      connection.json<TaskReport>(`/api/tasks/${encodeURIComponent(id)}/audit`, { signal: stop.signal });
    const show = async () => {
      // One after the other, because ingress runs few audits at a time.
      const one = await read(a);
      setRows(timeRows(one, await read(b)));
    };
    show().catch(() => {});
    return () => stop.abort();
  }, []);
  return rows;
}

const PartName = ({ part }: { part: TaskPart }) => <bdi>{visibleText(part.name.replaceAll('_', ' '))}</bdi>;

/** The text is rendered when it is opened, because an answer may be long. */
function SamePart({ part }: { part: TaskPart }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="card compare-part" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <PartName part={part} /> <span class="muted">same</span>
      </summary>
      {isOpen && <Text segments={segmentsOf(part.a ?? '')} />}
    </details>
  );
}

const Difference = memo(({ part }: { part: TaskPart }) => {
  const [one, other] = useMemo(() => differingTexts(part.a ?? '', part.b ?? ''), [part]);
  return (
    <section class="card compare-part" aria-label={part.name}>
      <h2>
        <PartName part={part} />
      </h2>
      <div class="compare-sides">
        {(
          [
            ['A', part.a, one],
            ['B', part.b, other],
          ] as const
        ).map(([name, text, { before, differing, after }]) => (
          <div key={name} class="compare-side" role="group" aria-label={`${part.name} of ${name}`} tabIndex={0}>
            <span class="compare-side-name muted small">{name}</span>
            {text === undefined ? (
              <span class="muted">none</span>
            ) : (
              // Each text is one element, so that its own first letters determine its direction.
              <span class="text" dir="auto">
                {visibleText(before)}
                <mark>{visibleText(differing)}</mark>
                {visibleText(after)}
              </span>
            )}
          </div>
        ))}
      </div>
    </section>
  );
});

function useDiff(a: string, b: string, connection: Connection): { diff: TaskDiff | undefined; fault: string } {
  const [diff, setDiff] = useState<TaskDiff>();
  const [fault, setFault] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    const read = async () => {
      // The comparison is loaded only on this page.
      const { compareTasks, readTaskFacts } = await loadPart(import('./read-task-facts.ts'));
      const facts: TaskFacts[] = [];
      for (const id of [a, b]) {
        const { body } = await openExport(connection, id, stop.signal);
        facts.push(await readTaskFacts(body!));
      }
      if (!stop.signal.aborted) setDiff(compareTasks(facts[0]!, facts[1]!));
    };
    read().catch((error: Error) => {
      if (!stop.signal.aborted) setFault(error.message);
    });
    return () => stop.abort();
  }, []);
  return { diff, fault };
}

async function openExport(connection: Connection, id: string, signal: AbortSignal): Promise<Response> {
  for (let retries = 0; ; ) {
    try {
      return await connection.open(`/api/tasks/${encodeURIComponent(id)}/export?records=facts`, { signal });
    } catch (error) {
      if (!(error instanceof UnreachableError)) {
        const { status, message } = refusalOf(error);
        retries += 1;
        if ((status !== 503 && status !== 429) || retries > RETRIES_MAX) throw new Error(`${id}: ${message}`);
      }
    }
    await new Promise(resolve => setTimeout(resolve, RETRY_MS));
  }
}
