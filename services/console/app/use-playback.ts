import { useEffect, useReducer, useRef } from 'preact/hooks';
import { actionOf, advanced, applied, LIVE, type Playback, type PlaybackAction, scrolls } from './playback.ts';
import { queryMember, setQuery } from './routes.ts';
import type { TaskSession } from './task-session.ts';

/** Rest time of the playhead after which the address names its event. */
const ADDRESS_MS = 250;

/** The playhead, which all views share. It follows the task until it is moved. */
export function usePlayback(session: TaskSession, version: number): [Playback, (action: PlaybackAction) => void] {
  const { recording } = session;
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const latest = useRef<Playback>(LIVE);
  const addressTimer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const linked = useRef<string | null>(queryMember('seq') || null);
  const set = (next: Playback) => {
    if (next === latest.current) return;
    latest.current = next;
    redraw(undefined);
  };
  const act = (action: PlaybackAction) => {
    linked.current = null;
    const next = applied(latest.current, action, recording, recording.markers());
    set(next);
    // A drag makes many changes, and browsers refuse addresses that change too often.
    clearTimeout(addressTimer.current);
    addressTimer.current = setTimeout(
      () => setQuery({ seq: next.isLive ? '' : (recording.items[next.index]?.cursor ?? '') }),
      ADDRESS_MS,
    );
  };
  // After this page is gone, the playhead no longer belongs to the address.
  useEffect(() => () => clearTimeout(addressTimer.current), []);
  // Runs within the rendering of new events, so that they are rendered only once.
  if (linked.current === null && !latest.current.isPlaying) latest.current = advanced(latest.current, 0, recording);
  const playback = latest.current;
  useEffect(() => {
    // The page was opened by a link to an event, which may arrive later than the first events.
    if (linked.current === null) return;
    const index = recording.indexOf(linked.current);
    if (index === undefined) linked.current = null;
    else {
      set(applied(latest.current, { type: 'index', index }, recording, []));
      if (index < recording.length - 1 || session.isEnded) linked.current = null;
    }
  }, [version]);
  useEffect(() => {
    if (!playback.isPlaying) return;
    let before = performance.now();
    let frame = requestAnimationFrame(function tick(now) {
      set(advanced(latest.current, now - before, recording));
      before = now;
      if (latest.current.isPlaying) frame = requestAnimationFrame(tick);
      else setQuery({ seq: recording.items[latest.current.index]?.cursor ?? '' });
    });
    return () => cancelAnimationFrame(frame);
  }, [playback.isPlaying]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (target.matches('input, textarea, select, [contenteditable]')) return;
      if (event.key === ' ' && target.matches('button, a, summary')) return;
      if (/^(Home|End)$/.test(event.key) && target.closest('.rows') !== null) return;
      if (target !== document.body && scrolls(event, target)) return;
      const action = actionOf(event, recording.endPlayMs);
      if (action === undefined) return;
      event.preventDefault();
      act(action);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return [playback, act];
}
