/** All zero where nothing was measured. */
export type Percentiles = { count: number; p50: number; p99: number; max: number };

/** Nearest rank: the smallest value that so many percent of all do not exceed. */
export function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (percent: number) => sorted[Math.max(1, Math.ceil((percent / 100) * sorted.length)) - 1] ?? 0;
  return { count: sorted.length, p50: at(50), p99: at(99), max: sorted.at(-1) ?? 0 };
}
