import type { TaskReport } from '@hopline/task-audit';
import { duration } from '@hopline/task-audit/waterfall';
import { useMemo } from 'preact/hooks';
import type { Connection } from './connection.ts';
import { Explanation } from './explanation.tsx';
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
          path={session.path}
          connection={connection}
          cursor={`${selected.generation}.${selected.seq}`}
        />
      )}
    </div>
  );
}
