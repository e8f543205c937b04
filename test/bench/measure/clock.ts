/** Milliseconds of the machine's monotonic clock: equal in all processes of this machine, unlike performance.now(). */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Difference of epoch and monotonic milliseconds, accurate to a few microseconds, because it is read at an edge of the millisecond
 * clock. Blocks for at most a millisecond.
 */
export function epochOffsetMs(): number {
  const from = Date.now();
  for (;;) {
    const now = Date.now();
    if (now !== from) return now - monotonicMs();
  }
}
