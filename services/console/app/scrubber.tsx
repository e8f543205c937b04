import { duration } from '@hopline/task-audit/waterfall';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Axis } from './axis.ts';
import { drawnAgain } from './drawn-again.ts';
import { positionText } from './plain-text.ts';
import { type Playback, type PlaybackAction, SPEEDS } from './playback.ts';
import type { Marker, Recording } from './recording.ts';

type Props = {
  recording: Recording;
  markers: readonly Marker[];
  playback: Playback;
  isEnded: boolean;
  isConnected: boolean;
  act: (action: PlaybackAction) => void;
  axis: Axis;
  zoom: { value: number; canGrow: boolean; by: (steps: number) => void };
  /** Grows with each change of the recording. */
  version: number;
};

/** Minimum time between two renderings of the density, which reads every event. */
const DENSITY_MS = 200;

const KEYS = [
  ['space', 'play, pause'],
  ['← →', '5 seconds back, forward'],
  ['shift ← →', 'a tenth back, forward'],
  [', .', 'one event back, forward'],
  ['[ ]', 'previous, next marker'],
  ['0 … 9', 'go to a tenth'],
  ['< >', 'slower, faster'],
  ['+ -', 'zoom in, out, around the playhead'],
  ['l', 'follow live'],
  ['m', 'Markdown or source'],
  ['?', 'this help'],
] as const;

/** The bar of the task. A click, a drag and the keys of asciinema move one playhead for all views. */
export function Scrubber({ recording, markers, playback, isEnded, isConnected, act, axis, zoom, version }: Props) {
  const { index, isPlaying, isLive, speed } = playback;
  const [showsHelp, setHelp] = useState(false);
  useEffect(() => {
    const onKey = ({ key, target }: KeyboardEvent) => {
      if (key === '?' && !(target as HTMLElement).matches('input, textarea, select')) setHelp(shows => !shows);
      if (key === 'Escape') setHelp(false);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  const position = positionText(recording.atMs(Math.max(0, index)));
  const total = positionText(recording.atMs(recording.length - 1));
  const cursor = recording.items[index]?.cursor;
  return (
    <section class="scrubber" aria-label="Playback">
      <button
        type="button"
        class="button button-play"
        aria-label={isPlaying ? 'Pause' : 'Play'}
        title="space"
        onClick={() => act({ type: 'toggle' })}
      >
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
          {isPlaying ? <path d="M3 2h4v12H3zM9 2h4v12H9z" /> : <path d="M4 2l10 6-10 6z" />}
        </svg>
      </button>
      <span class="scrubber-time">
        {position} <span class="muted">/ {total}</span>
      </span>
      <Bar recording={recording} markers={markers} playback={playback} act={act} axis={axis} version={version} />
      <span class="muted small scrubber-count" title={cursor === undefined ? '' : `cursor ${cursor}`}>
        {index + 1} / {recording.length}
      </span>
      <span class="zoom only-wide" role="group" aria-label="Zoom">
        <button
          type="button"
          class="button button-quiet"
          onClick={() => zoom.by(-1)}
          disabled={zoom.value === 1}
          aria-label="Zoom out"
          title="-"
        >
          −
        </button>
        <button
          type="button"
          class="button button-quiet"
          onClick={() => zoom.by(1)}
          disabled={!zoom.canGrow}
          aria-label="Zoom in"
          title="+"
        >
          +
        </button>
      </span>
      <select
        aria-label="Speed"
        value={String(speed)}
        onChange={event => act({ type: 'speed', speed: Number(event.currentTarget.value) })}
      >
        {SPEEDS.map(one => (
          <option key={one} value={String(one)}>
            {one}×
          </option>
        ))}
      </select>
      {!isEnded && (
        <button
          type="button"
          class="button button-live"
          aria-pressed={isLive}
          onClick={() => act({ type: 'live' })}
          title={isConnected ? 'l' : 'connecting again'}
        >
          <span class={`dot ${isConnected ? 'dot-on' : 'dot-off'}`} />
          Live
        </button>
      )}
      <button
        type="button"
        class="button button-quiet only-wide"
        aria-expanded={showsHelp}
        onClick={() => setHelp(!showsHelp)}
        title="Keys"
      >
        ?
      </button>
      {showsHelp && <KeysHelp />}
    </section>
  );
}

type BarProps = Omit<Props, 'isEnded' | 'isConnected' | 'zoom'>;

function Bar({ recording, markers, playback: { index, playMs }, act, axis, version }: BarProps) {
  const { bar, ...pointer } = useBar(fraction => act({ type: 'play', playMs: axis.playMsAt(fraction) }));
  const percent = (ms: number) => `${Math.min(1, Math.max(0, axis.ofPlayMs(ms))) * 100}%`;
  const isShown = (fromMs: number, toMs = fromMs) => axis.ofPlayMs(toMs) >= 0 && axis.ofPlayMs(fromMs) <= 1;
  const idle = useMemo(() => recording.idleSpans(), [version]);
  const position = positionText(recording.atMs(Math.max(0, index)));
  const total = positionText(recording.atMs(recording.length - 1));
  return (
    <div
      class="scrubber-bar"
      ref={bar}
      role="slider"
      tabIndex={0}
      aria-label="Position in the task"
      aria-valuemin={0}
      aria-valuemax={recording.length}
      aria-valuenow={index + 1}
      aria-valuetext={`${position} of ${total}, event ${index + 1} of ${recording.length}`}
      {...pointer}
    >
      <Density recording={recording} axis={axis} version={version} />
      {idle
        .filter(({ fromPlayMs, toPlayMs }) => isShown(fromPlayMs, toPlayMs))
        .map(({ fromPlayMs, toPlayMs, ms }) => (
          <span
            key={fromPlayMs}
            class="scrubber-idle"
            title={`${duration(ms)} without events`}
            style={{ left: percent(fromPlayMs), width: `calc(${percent(toPlayMs)} - ${percent(fromPlayMs)})` }}
          />
        ))}
      <span class="scrubber-done" style={{ width: percent(playMs) }} />
      {markers
        .filter(({ kind, index: at }) => kind !== 'artifact' && isShown(recording.playMs(at)))
        .map(({ index: at, kind, label }) => (
          <span
            key={`${kind}-${at}-${label}`}
            class={`scrubber-marker marker-${kind}`}
            title={label}
            style={{ left: percent(recording.playMs(at)) }}
          />
        ))}
      <span class="scrubber-head" style={{ left: percent(playMs) }} />
    </div>
  );
}

function KeysHelp() {
  return (
    <dl class="keys card">
      {KEYS.map(([keys, meaning]) => (
        <div key={keys}>
          <dt>
            <kbd>{keys}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}

function useBar(onSeek: (fraction: number) => void) {
  const bar = useRef<HTMLDivElement>(null);
  const seek = ({ clientX }: PointerEvent) => {
    const { left, width } = bar.current!.getBoundingClientRect();
    onSeek(Math.max(0, Math.min(1, (clientX - left) / width)));
  };
  return {
    bar,
    onPointerDown: (event: PointerEvent) => {
      bar.current!.setPointerCapture(event.pointerId);
      seek(event);
    },
    onPointerMove: (event: PointerEvent) => {
      if (bar.current!.hasPointerCapture(event.pointerId)) seek(event);
    },
  };
}

/** Number of events per pixel, in buckets, so that 100,000 events cost as much as 100. */
function Density({ recording, axis, version }: Pick<Props, 'recording' | 'axis' | 'version'>) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = useRef(axis);
  shown.current = axis;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      drawDensity(canvas.current!, recording, shown.current);
    }, DENSITY_MS);
  }, [version, axis.key]);
  // Runs before the element is removed; an effect would run later.
  useLayoutEffect(() => {
    const stop = drawnAgain(canvas.current!, () => drawDensity(canvas.current!, recording, shown.current));
    return () => {
      stop();
      clearTimeout(timer.current);
    };
  }, []);
  return <canvas class="scrubber-density" ref={canvas} aria-hidden="true" />;
}

function drawDensity(element: HTMLCanvasElement, recording: Recording, axis: Axis): void {
  const width = Math.max(1, Math.floor(element.clientWidth));
  const height = Math.max(1, element.clientHeight);
  const scale = devicePixelRatio;
  element.width = width * scale;
  element.height = height * scale;
  const counts = new Uint32Array(width);
  for (let index = 0; index < recording.length; index += 1) {
    const place = axis.ofPlayMs(recording.playMs(index));
    if (place < 0 || place > 1) continue;
    const bucket = Math.min(width - 1, Math.floor(place * width));
    counts[bucket] = counts[bucket]! + 1;
  }
  const most = counts.reduce((max, count) => Math.max(max, count), 1);
  const context = element.getContext('2d')!;
  context.scale(scale, scale);
  context.fillStyle = getComputedStyle(element).color;
  for (const [x, count] of counts.entries()) {
    const bar = count === 0 ? 0 : Math.max(2, (Math.log1p(count) / Math.log1p(most)) * height);
    context.fillRect(x, height - bar, 1, bar);
  }
}
