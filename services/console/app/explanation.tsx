import type { EventExplanation } from '@hopline/task-audit';
import { whyLines } from '@hopline/task-audit/why-lines';
import { useEffect, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';
import { visibleText } from './plain-text.ts';

/** While a task plays, many events pass. Only an event at which playing stops is explained. */
const REST_MS = 300;

const timeOfDay = (ms: number) => new Date(ms).toLocaleTimeString('en-GB');

/** Where one event comes from and where its time went, in the sentences of `hopline why`. `path`: the task's path in the API. */
export function Explanation({ path, connection, cursor }: { path: string; connection: Connection; cursor: string }) {
  const [lines, setLines] = useState<readonly string[]>();
  const [fault, setFault] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    setFault('');
    const timer = setTimeout(() => {
      connection
        .json<EventExplanation>(`${path}/audit/${cursor}`, { signal: stop.signal })
        .then(explanation => setLines(whyLines(explanation, timeOfDay)))
        .catch(error => {
          if (!stop.signal.aborted) setFault(error.message);
        });
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, cursor]);
  return (
    <div class="explanation" role="group" tabIndex={0} aria-label="Where this event comes from">
      <h2>
        Event <code>{cursor}</code>
      </h2>
      {fault !== '' && <p class="muted">{visibleText(fault)}</p>}
      {lines === undefined && fault === '' && <p class="muted">…</p>}
      {lines !== undefined && (
        <ul class="sentences">
          {lines.map((line, index) => (
            <li key={index} class={/^ {4}/.test(line) ? 'sentence-inner' : ''}>
              <bdi>{visibleText(line.trim())}</bdi>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
