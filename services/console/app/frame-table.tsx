import { sleep } from '@hopline/client/sleep';
import { useEffect, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';
import { frameText } from './frame-text.ts';
import { legacyFrames } from './legacy-frames.ts';
import { excerpt, visibleText } from './plain-text.ts';
import type { TaskSession } from './task-session.ts';
import { VirtualRows } from './virtual-rows.tsx';

type Props = {
  session: TaskSession;
  connection: Connection;
  /** A server is there, which encodes the frames in other dialects. */
  hasDialects: boolean;
  index: number;
  onSeek: (index: number) => void;
};

const ROW_PX = 28;
const LINE_CHARS_MAX = 220;
/** Minimum time between two renderings of frames in another dialect, because each rendering copies all of them. */
const SHOWN_MS = 200;
/** `text`: the frame as a row shows it. `data`: the frame as JSON, made when it is selected. */
type Frame = { cursor: string; kind: string; text: () => string; data: () => string };

/** The frames of the stream. Frames of another dialect are requested once, as a client of that dialect receives them. */
export function FrameTable({ session, connection, hasDialects, index, onSeek }: Props) {
  const [dialect, setDialect] = useState<'1.0' | '0.3'>('1.0');
  const { frames: legacy, fault } = useLegacyFrames(session, connection, dialect === '0.3');
  const { items } = session.recording;
  const frameAt = (at: number): Frame => {
    if (dialect === '0.3') return legacy[at]!;
    const { cursor, event } = items[at]!;
    if (event === 'gap') return { cursor, kind: 'gap', text: () => '', data: () => '{}' };
    return { cursor, kind: kindOf(event), text: () => frameText(event), data: () => JSON.stringify(event) };
  };
  const count = dialect === '1.0' ? items.length : legacy.length;
  const cursor = items[index]?.cursor;
  const focus = dialect === '1.0' ? index : legacy.findIndex(frame => frame.cursor === cursor);
  const seek = (at: number) => onSeek(dialect === '1.0' ? at : items.findIndex(item => item.cursor === legacy[at]!.cursor));
  const selected = focus >= 0 && focus < count ? frameAt(focus) : undefined;
  return (
    <div class="table-view">
      {hasDialects && (
        <fieldset class="segments">
          <legend class="visually-hidden">Dialect</legend>
          {(['1.0', '0.3'] as const).map(one => (
            <label key={one}>
              <input type="radio" name="dialect" checked={dialect === one} onChange={() => setDialect(one)} />
              <span>A2A {one}</span>
            </label>
          ))}
        </fieldset>
      )}
      <VirtualRows
        label="Frames"
        count={count}
        rowHeight={ROW_PX}
        keyOf={at => at}
        focus={focus}
        row={at => {
          const frame = frameAt(at);
          return (
            <button type="button" class="grid grid-frames grid-row" aria-current={at === focus} onClick={() => seek(at)}>
              <code class="muted">{frame.cursor}</code>
              <span class="muted">{frame.kind}</span>
              <code class="cut">{excerpt(frame.text(), LINE_CHARS_MAX)}</code>
            </button>
          );
        }}
      />
      {dialect === '0.3' && fault !== '' && (
        <p class="notice notice-error" role="alert">
          {visibleText(fault)}
        </p>
      )}
      {selected !== undefined && (
        <pre class="frame-json" role="group" tabIndex={0} aria-label="The selected frame">
          {visibleText(indented(selected.data()))}
        </pre>
      )}
    </div>
  );
}

const kindOf = (event: object) => Object.keys(event)[0] ?? '';

function indented(data: string): string {
  try {
    return JSON.stringify(JSON.parse(data), null, 2);
  } catch {
    return data;
  }
}

/** Reads the frames from the beginning when they are first requested. */
function useLegacyFrames(
  session: TaskSession,
  connection: Connection,
  isShown: boolean,
): { frames: readonly Frame[]; fault: string } {
  const [frames, setFrames] = useState<readonly Frame[]>([]);
  const [fault, setFault] = useState('');
  useEffect(() => {
    if (!isShown) return;
    const stop = new AbortController();
    const found: Frame[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      timer = undefined;
      setFrames([...found]);
    };
    const read = async () => {
      const path = `${session.path.replace('/api/', '/api/v1/')}:subscribe`;
      const { signal } = stop;
      const open = (cursor: string) => {
        const headers = { 'a2a-version': '0.3', 'last-event-id': cursor, accept: 'text/event-stream' };
        return session.shown.open(shown => connection.open(path, { headers, signal: AbortSignal.any([signal, shown]) }));
      };
      const isEnd = (cursor: string | undefined) =>
        session.isEnded && (cursor === undefined || cursor === session.recording.items.at(-1)?.cursor);
      for await (const { cursor, data } of legacyFrames({ open, isEnd, sleep, signal })) {
        const frame = frameOf03(data);
        found.push({ cursor, kind: frame?.kind ?? '', text: () => frame?.text ?? data, data: () => data });
        timer ??= setTimeout(show, SHOWN_MS);
      }
    };
    read().catch((error: Error) => {
      if (!stop.signal.aborted) setFault(`The frames end here: ${error.message}`);
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [isShown, session]);
  return { frames, fault };
}

/** Kind and text of a frame of A2A 0.3; undefined if it is not JSON. */
function frameOf03(data: string): { kind: string; text: string } | undefined {
  try {
    const frame = JSON.parse(data) as { kind?: string; result?: { kind?: string } };
    return {
      kind: frame.kind ?? frame.result?.kind ?? Object.keys(frame)[0] ?? '',
      text: excerpt(frameText(frame), LINE_CHARS_MAX),
    };
  } catch {
    return undefined;
  }
}
