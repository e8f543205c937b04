const FIRST_MS = 200;
const LONGEST_MS = 5000;
/** A process that lived this long is taken as healthy again. */
const HEALTHY_MS = 30_000;

/**
 * How long to wait before a process is started again, ms.
 * @param previousMs the wait before its last start, 0 for the first
 * @param livedMs how long it then lived
 */
export function restartDelay(previousMs: number, livedMs: number): number {
  if (previousMs === 0 || livedMs >= HEALTHY_MS) return FIRST_MS;
  return Math.min(previousMs * 2, LONGEST_MS);
}
