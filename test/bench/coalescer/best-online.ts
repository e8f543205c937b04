/** A rule for arrivals without a pattern: send as soon as this many tokens are held, or when nothing has arrived for this long. */
export type ThresholdRule = { tokens: number; patienceMs: number };

const TOKENS_MAX = 64;
/** Thresholds to try, each about 1.2 times the previous one. */
const TOKENS = Array.from({ length: 40 }, (_, step) => Math.round(1.2 ** step)).filter(
  (tokens, index, all) => tokens <= TOKENS_MAX && tokens !== all[index - 1],
);
const PATIENCE_MS = [0.5, 1, 1.4, 2, 2.8, 4, 5.6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 180, 250];

/**
 * Least cost of any such rule on these lanes, chosen afterwards: at least as good as every rule that knows the distribution of the
 * arrivals. If gaps are independent, only the number of held tokens matters; patience is for the end of a lane or a burst. It keeps the
 * promises of the coalescer: the first text is sent at once, nothing is held longer than `holdMsMax`, and no rule knows where a lane ends.
 */
export function bestOnlineCost(lanes: readonly number[][], eventCostMs: number, holdMsMax: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (const tokens of TOKENS) {
    for (const patienceMs of PATIENCE_MS) {
      let cost = 0;
      for (const times of lanes) cost += thresholdCost(times, { tokens, patienceMs }, eventCostMs, holdMsMax);
      best = Math.min(best, cost);
    }
  }
  return best;
}

export function thresholdCost(
  times: readonly number[],
  { tokens, patienceMs }: ThresholdRule,
  eventCostMs: number,
  holdMsMax: number,
): number {
  let cost = 0;
  let held = 0;
  let startMs = 0;
  for (let index = 0; index < times.length; index++) {
    const nowMs = times[index]!;
    const nextMs = times[index + 1] ?? Number.POSITIVE_INFINITY;
    if (held === 0) startMs = nowMs;
    held++;
    // Tokens that arrive at one instant are one arrival.
    if (nextMs === nowMs) continue;
    const isFirst = nowMs === times[0];
    const waitMs = isFirst || held >= tokens ? 0 : Math.min(patienceMs, startMs + holdMsMax - nowMs);
    if (nextMs - nowMs <= waitMs) cost += held * (nextMs - nowMs);
    else {
      cost += eventCostMs + held * waitMs;
      held = 0;
    }
  }
  return cost;
}
