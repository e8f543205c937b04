import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Long enough for a machine with a load of 20; a test that must end earlier passes its own limit. */
const PATIENCE_MS = 60_000;
/** Short, because some conditions are met only for a moment. */
const PAUSE_MS_MIN = 5;
/** A look that takes long, as a request to a service does, is followed by a pause that is longer than it by this factor. */
const PAUSES_PER_LOOK = 3;
/**
 * Looks that take longer than REQUEST_MS_MIN are requests, which take the processor from the work that they wait for. In a long wait the
 * pause between them is a sixteenth of the time so far.
 */
const REQUEST_MS_MIN = 1;
const WAITED_PER_PAUSE = 16;
const PAUSE_MS_MAX = 100;

type Met<T> = Exclude<NonNullable<T>, false>;

/**
 * Resolves with the first result of `look` that is neither false, null nor undefined. After `msMax` it fails and names `what` it waited
 * for, by default the source text of `look`.
 */
export function until<T>(
  look: () => T | Promise<T>,
  what: string | (() => unknown) = String(look),
  msMax = PATIENCE_MS,
): Promise<Met<T>> {
  const pause = (lookMs: number, waitedMs: number) => {
    const growing = lookMs < REQUEST_MS_MIN ? 0 : waitedMs / WAITED_PER_PAUSE;
    return sleep(Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, PAUSES_PER_LOOK * lookMs, growing)));
  };
  return poll(look, what, msMax, pause);
}

/**
 * Like `until`, but looks once in every turn of the event loop: for tests whose timers are mocked, and for those that must continue before
 * the next timer of a few milliseconds. Work that takes long needs `until`, which leaves it the processor.
 */
export function untilTick<T>(
  look: () => T | Promise<T>,
  what: string | (() => unknown) = String(look),
  msMax = PATIENCE_MS,
): Promise<Met<T>> {
  return poll(look, what, msMax, () => new Promise<void>(resolve => setImmediate(resolve)));
}

async function poll<T>(
  look: () => T | Promise<T>,
  what: string | (() => unknown),
  msMax: number,
  pause: (lookMs: number, waitedMs: number) => Promise<void>,
): Promise<Met<T>> {
  const beganAtMs = performance.now();
  for (;;) {
    const lookedAtMs = performance.now();
    const found = await look();
    if (found !== false && found !== null && found !== undefined) return found as Met<T>;
    const nowMs = performance.now();
    if (nowMs - beganAtMs > msMax) assert.fail(`${typeof what === 'string' ? what : what()}: not within ${msMax} ms`);
    await pause(nowMs - lookedAtMs, nowMs - beganAtMs);
  }
}
