import type { TaskReport } from '@hopline/task-audit';
import { duration } from '@hopline/task-audit/waterfall';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';
import { visibleText } from './plain-text.ts';
import type { TaskSession } from './task-session.ts';
import { VirtualRows } from './virtual-rows.tsx';

type Props = {
  session: TaskSession;
  connection: Connection;
  /** Generation of the event at the playhead. */
  current: number | undefined;
  onSeek: (index: number) => void;
};

const ROW_PX = 30;
const NO_EVENTS: TaskReport['events'] = [];

/** A table of the task's events: the inputs of each, how long it was held and why it was released. */
export function ChunkTable({ session, connection, current, onSeek }: Props) {
  const events = session.report?.events ?? NO_EVENTS;
  const places = useMemo(() => new Map(events.map(({ generation }, index) => [generation, index])), [events]);
  const focus = current === undefined ? undefined : places.get(current);
  if (session.report === undefined)
    return (
      <p class="muted pad">
        {session.auditFault === '' ? 'Reading the log of the task …' : `No chunks: ${visibleText(session.auditFault)}.`}
      </p>
    );
  const selected = focus === undefined ? undefined : events[focus];
  return (
    <div class="table-view">
      <div class="grid grid-chunks grid-head" aria-hidden="true">
        <span class="number">time</span>
        <span>event</span>
        <span>agent</span>
        <span class="number">text</span>
        <span class="number">tokens</span>
        <span>released by</span>
        <span class="number">held</span>
        <span class="number">age</span>
      </div>
      <VirtualRows
        label="Events of the task"
        count={events.length}
        rowHeight={ROW_PX}
        keyOf={index => events[index]!.generation}
        focus={focus}
        row={index => {
          const { generation, atMs, name, agent = '', characters, chunk, attempt = 1, last } = events[index]!;
          return (
            <button
              type="button"
              class="grid grid-chunks grid-row"
              aria-current={generation === current}
              onClick={() => onSeek(session.recording.indexOfGeneration(generation))}
            >
              <span class="number">{duration(atMs)}</span>
              <span class="cut">
                <bdi>{visibleText(name)}</bdi>
                {last && <span class="muted"> ■</span>}
              </span>
              <span class="cut">
                <bdi>{visibleText(agent)}</bdi>
                {attempt > 1 && <span class="tag">attempt {attempt}</span>}
              </span>
              <span class="number">{characters || ''}</span>
              <span class="number">{chunk?.tokens}</span>
              <span>{chunk?.reason.replaceAll('_', ' ')}</span>
              <span class="number">{chunk && duration(chunk.heldMs)}</span>
              <span class="number">{chunk && duration(chunk.ageMs)}</span>
            </button>
          );
        }}
      />
      {selected !== undefined && (
        <Explanation
          key={selected.generation}
          session={session}
          connection={connection}
          cursor={`${selected.generation}.${selected.seq}`}
        />
      )}
    </div>
  );
}

/** The origin of one event, as `hopline why` reports it. */
function Explanation({ session, connection, cursor }: { session: TaskSession; connection: Connection; cursor: string }) {
  const [value, setValue] = useState<Record<string, unknown>>();
  const [fault, setFault] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    // While a task plays, many events pass; only one that stays is explained.
    const timer = setTimeout(() => {
      connection
        .json<Record<string, unknown>>(`${session.path}/audit/${cursor}`, { signal: stop.signal })
        .then(setValue, error => {
          if (!stop.signal.aborted) setFault(error.message);
        });
    }, 300);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [cursor]);
  return (
    <aside class="explanation" aria-label="Where this event comes from">
      <h2>
        Event <code>{cursor}</code>
      </h2>
      {fault !== '' && <p class="muted">{visibleText(fault)}</p>}
      {value === undefined && fault === '' && <p class="muted">…</p>}
      {value !== undefined && <Members value={value} />}
    </aside>
  );
}

function Members({ value }: { value: Record<string, unknown> }) {
  return (
    <dl class="members">
      {Object.entries(value).map(([name, member]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {typeof member === 'object' && member !== null && !Array.isArray(member) ? (
              <Members value={member as Record<string, unknown>} />
            ) : (
              <code>{visibleText(Array.isArray(member) ? JSON.stringify(member) : String(member))}</code>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}
