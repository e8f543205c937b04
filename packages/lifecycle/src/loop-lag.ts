/** Sampling interval. */
export const LOOP_SAMPLE_MS = 100;
/** A lag is kept for one to two windows, so that a probe after a block still observes it. */
export const LOOP_WINDOW_MS = 5_000;

type LoopLag = {
  /** Longest delay of the event loop in the last LOOP_WINDOW_MS to 2 * LOOP_WINDOW_MS. */
  maxMs(): number;
  stop(): void;
};

/**
 * Measures the delay of timers. `monitorEventLoopDelay` never forgets its maximum: one old block would fail every later probe.
 */
export function watchLoopLag(nowMs: () => number = () => performance.now()): LoopLag {
  let expectedMs = nowMs() + LOOP_SAMPLE_MS;
  let windowEndMs = nowMs() + LOOP_WINDOW_MS;
  let current = 0;
  let previous = 0;
  const sample = () => {
    const now = nowMs();
    if (now >= windowEndMs) {
      previous = now >= windowEndMs + LOOP_WINDOW_MS ? 0 : current;
      current = 0;
      windowEndMs = now + LOOP_WINDOW_MS;
    }
    current = Math.max(current, now - expectedMs);
    expectedMs = now + LOOP_SAMPLE_MS;
  };
  const timer = setInterval(sample, LOOP_SAMPLE_MS).unref();
  return {
    // The timer itself is late while the loop is blocked, so the current delay counts too.
    maxMs: () => Math.max(0, current, previous, nowMs() - expectedMs),
    stop: () => clearInterval(timer),
  };
}
