/**
 * The offline optimum of `K x events + sum of added delay` for arrival times known in advance: the lower bound for every online rule. A
 * chunk of the optimum is sent when its last token arrives, because waiting longer would only add delay. So with f(j) the best cost of the
 * first j tokens, f(j) = min over i < j of f(i) + K + sum of (t[j] - t[l]) for i < l <= j.
 */
export type Optimum = { cost: number; events: number };

/** `times` in ms, never decreasing. `holdMsMax`: no token may wait longer. Takes O(n x longest chunk worth examining). */
export function offlineOptimum(times: readonly number[], eventCostMs: number, holdMsMax = Number.POSITIVE_INFINITY): Optimum {
  const best = new Float64Array(times.length + 1);
  const events = new Int32Array(times.length + 1);
  for (let end = 1; end <= times.length; end++) {
    const leavesMs = times[end - 1]!;
    best[end] = Number.POSITIVE_INFINITY;
    let delay = 0;
    for (let start = end - 1; start >= 0; start--) {
      const waitMs = leavesMs - times[start]!;
      if (waitMs > holdMsMax) break;
      delay += waitMs;
      const cost = best[start]! + eventCostMs + delay;
      if (cost < best[end]!) {
        best[end] = cost;
        events[end] = events[start]! + 1;
      }
      if (splitPays(times, start, end, eventCostMs)) break;
    }
  }
  return { cost: best[times.length]!, events: events[times.length]! };
}

/**
 * Whether sending the older half at its own last arrival saves more than an event costs. If so, neither this chunk nor any that begins
 * earlier is optimal.
 */
function splitPays(times: readonly number[], start: number, end: number, eventCostMs: number): boolean {
  const half = (end - start) >> 1;
  if (half === 0) return false;
  return half * (times[end - 1]! - times[start + half - 1]!) > eventCostMs;
}
