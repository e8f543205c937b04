/** Milliseconds of the machine's monotonic clock: the same in every process of this machine, unlike performance.now(). */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** What to add to monotonicMs() for epoch milliseconds, to a few microseconds: taken at an edge of the millisecond clock. Blocks for at most a millisecond. */
export function epochOffsetMs(): number {
  const from = Date.now();
  for (;;) {
    const now = Date.now();
    if (now !== from) return now - monotonicMs();
  }
}
