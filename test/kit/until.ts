import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Long enough for a machine with a load of 20; a test that must end earlier passes its own limit. */
const PATIENCE_MS = 60_000;
/** Short, because some conditions are met only for a moment. */
const PAUSE_MS_MIN = 5;
/** A look that takes long, as a request to a service does, is followed by a pause that is longer than it by this factor. */
const PAUSES_PER_LOOK = 3;
const PAUSE_MS_MAX = 100;

/**
 * Resolves with the first result of `look` that is neither false, null nor undefined. After `msMax` it fails and names `what` it waited
 * for, by default the source text of `look`.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  what: string | (() => unknown) = String(look),
  msMax = PATIENCE_MS,
): Promise<Exclude<NonNullable<T>, false>> {
  const endsAtMs = performance.now() + msMax;
  for (;;) {
    const lookedAtMs = performance.now();
    const found = await look();
    if (found !== false && found !== null && found !== undefined) return found as Exclude<NonNullable<T>, false>;
    const nowMs = performance.now();
    if (nowMs > endsAtMs) assert.fail(`${typeof what === 'string' ? what : what()}: not within ${msMax} ms`);
    await sleep(Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, PAUSES_PER_LOOK * (nowMs - lookedAtMs))));
  }
}
