import type { Marker, Recording } from './recording.ts';

/** Steps of the speed, as multiples of the recorded pace. */
export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16] as const;
/** Steps of the arrow keys. */
const ARROW_MS = 5_000;

export type Playback = {
  /** Position on the played axis. */
  playMs: number;
  /** Index of the last shown event; -1 before the first. */
  index: number;
  isPlaying: boolean;
  /** Shows each new event at once. */
  isLive: boolean;
  speed: number;
};

export type PlaybackAction =
  | { type: 'toggle' }
  | { type: 'live' }
  | { type: 'by'; playMs: number }
  | { type: 'fraction'; of: number }
  | { type: 'play'; playMs: number }
  | { type: 'step'; events: number }
  | { type: 'index'; index: number }
  | { type: 'marker'; direction: 1 | -1 }
  | { type: 'speed'; speed: number }
  | { type: 'faster' | 'slower' };

export const LIVE: Playback = { playMs: 0, index: -1, isPlaying: false, isLive: true, speed: 1 };

/** The keys of asciinema. Undefined for an unassigned key, and for one with a modifier that browsers use. */
export function actionOf(
  event: Pick<KeyboardEvent, 'key' | 'shiftKey' | 'ctrlKey' | 'altKey' | 'metaKey'>,
  endPlayMs: number,
): PlaybackAction | undefined {
  if (event.ctrlKey || event.altKey || event.metaKey) return undefined;
  const { key, shiftKey } = event;
  if (/^\d$/.test(key)) return { type: 'fraction', of: Number(key) / 10 };
  const arrowMs = shiftKey ? endPlayMs / 10 : ARROW_MS;
  switch (key) {
    case ' ':
      return { type: 'toggle' };
    case 'ArrowLeft':
      return { type: 'by', playMs: -arrowMs };
    case 'ArrowRight':
      return { type: 'by', playMs: arrowMs };
    case '[':
      return { type: 'marker', direction: -1 };
    case ']':
      return { type: 'marker', direction: 1 };
    case ',':
      return { type: 'step', events: -1 };
    case '.':
      return { type: 'step', events: 1 };
    case '<':
      return { type: 'slower' };
    case '>':
      return { type: 'faster' };
    case 'End':
    case 'l':
      return { type: 'live' };
    case 'Home':
      return { type: 'fraction', of: 0 };
    default:
      return undefined;
  }
}

/** Whether a key scrolls the focused element, such as a wide table, and therefore does not move the playhead. */
export function scrolls(
  { key }: Pick<KeyboardEvent, 'key'>,
  focused: Pick<Element, 'scrollWidth' | 'clientWidth' | 'scrollHeight' | 'clientHeight'>,
): boolean {
  if (key === 'ArrowLeft' || key === 'ArrowRight') return focused.scrollWidth > focused.clientWidth;
  return (key === 'Home' || key === 'End') && focused.scrollHeight > focused.clientHeight;
}

export function applied(playback: Playback, action: PlaybackAction, recording: Recording, markers: readonly Marker[]): Playback {
  const { playMs, index, isPlaying, speed } = playback;
  const end = recording.length - 1;
  const at = (next: number): Playback => {
    const bounded = Math.max(-1, Math.min(end, next));
    return { ...playback, isLive: false, index: bounded, playMs: recording.playMs(Math.max(0, bounded)) };
  };
  const atTime = (next: number): Playback => {
    const bounded = Math.max(0, Math.min(recording.endPlayMs, next));
    return { ...playback, isLive: false, playMs: bounded, index: recording.indexAt(bounded) };
  };
  switch (action.type) {
    case 'toggle':
      if (isPlaying) return { ...playback, isPlaying: false };
      return { ...(index >= end ? atTime(0) : playback), isLive: false, isPlaying: true };
    case 'live':
      return { ...at(end), isPlaying: false, isLive: true };
    case 'by':
      return atTime(playMs + action.playMs);
    case 'fraction':
      return atTime(recording.endPlayMs * action.of);
    case 'play':
      return atTime(action.playMs);
    case 'step':
      return { ...at(index + action.events), isPlaying: false };
    case 'index':
      return at(action.index);
    case 'marker': {
      const next = action.direction > 0 ? markers.find(one => one.index > index) : markers.findLast(one => one.index < index);
      return next === undefined ? playback : at(next.index);
    }
    case 'speed':
      return { ...playback, speed: action.speed };
    default: {
      const step = SPEEDS.findIndex(one => one >= speed) + (action.type === 'faster' ? 1 : -1);
      return { ...playback, speed: SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, step))]! };
    }
  }
}

/** Advances the playhead after time has passed or events have arrived. */
export function advanced(playback: Playback, elapsedMs: number, recording: Recording): Playback {
  const end = recording.length - 1;
  if (!playback.isPlaying) {
    // Finds the event's position again, because log times may have replaced arrival times.
    const index = playback.isLive ? end : playback.index;
    const playMs = recording.playMs(Math.max(0, index));
    return index === playback.index && playMs === playback.playMs ? playback : { ...playback, index, playMs };
  }
  const playMs = Math.min(recording.endPlayMs, playback.playMs + elapsedMs * playback.speed);
  const index = recording.indexAt(playMs);
  return { ...playback, playMs, index, isPlaying: index < end };
}
