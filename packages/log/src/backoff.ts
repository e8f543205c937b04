import { fullJitterMs } from '@hopline/a2a';

/** Backoff of a writer or reader of the log, with full jitter and at least `minMs`. `failures` is 1 after the first failure. */
export function backoffMs(failures: number, baseMs: number, maxMs: number, minMs = 0): number {
  return Math.max(minMs, fullJitterMs(failures, baseMs, maxMs, Math.random));
}
