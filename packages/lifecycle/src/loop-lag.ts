/** Sampling interval. */
export const LOOP_SAMPLE_MS = 100;
/** A block is remembered for one to two windows, so that a probe after it still sees it. */
export const LOOP_WINDOW_MS = 5_000;

type LoopLag = {
  /** Longest block of the event loop in the last LOOP_WINDOW_MS to 2 * LOOP_WINDOW_MS. */
  maxMs(): number;
  stop(): void;
};

/** CPU time that this process has used. */
function usedCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/**
 * Measures how long the event loop was blocked: the delay of a timer, but at most the CPU time that the process used meanwhile. A process
 * that gets no CPU (a starved node, SIGSTOP) is also late, but its loop is not blocked, and starting is when a process uses the most CPU
 * (ADR 227).
 *
 * `monitorEventLoopDelay` never forgets its maximum: one old block would fail every later probe.
 */
export function watchLoopLag(nowMs: () => number = () => performance.now(), cpuMs: () => number = usedCpuMs): LoopLag {
  let expectedMs = nowMs() + LOOP_SAMPLE_MS;
  let sampledCpuMs = cpuMs();
  let windowEndMs = nowMs() + LOOP_WINDOW_MS;
  let current = 0;
  let previous = 0;
  const blockedMs = () => Math.min(nowMs() - expectedMs, cpuMs() - sampledCpuMs);
  const sample = () => {
    const now = nowMs();
    if (now >= windowEndMs) {
      previous = now >= windowEndMs + LOOP_WINDOW_MS ? 0 : current;
      current = 0;
      windowEndMs = now + LOOP_WINDOW_MS;
    }
    current = Math.max(current, blockedMs());
    expectedMs = now + LOOP_SAMPLE_MS;
    sampledCpuMs = cpuMs();
  };
  const timer = setInterval(sample, LOOP_SAMPLE_MS).unref();
  return {
    // The timer itself is late while the loop is blocked, so the current delay counts too.
    maxMs: () => Math.max(0, current, previous, blockedMs()),
    stop: () => clearInterval(timer),
  };
}
