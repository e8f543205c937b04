/** Min, median and max over rounds, because a single number from a shared machine means little. */
export type Spread = { min: number; median: number; max: number; rounds: number };

/** Throws RangeError for an empty list, because a bench that measured nothing must not print a number. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort();
  return { min: percentile(sorted, 0), median: percentile(sorted, 50), max: percentile(sorted, 100), rounds: sorted.length };
}

/** Nearest rank, as HDR histograms count: the smallest value that at least `percent` % of all values do not exceed. `sorted` ascends. */
export function percentile(sorted: Float64Array, percent: number): number {
  if (sorted.length === 0) throw new RangeError('nothing was measured');
  if (!(percent >= 0 && percent <= 100)) throw new RangeError(`not a percentile: ${percent}`);
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length));
  return sorted[rank - 1]!;
}

export type Latency = { p50: number; p99: number; max: number; count: number };

/** Sorts its argument. */
export function latencyOf(values: Float64Array): Latency {
  values.sort();
  return { p50: percentile(values, 50), p99: percentile(values, 99), max: percentile(values, 100), count: values.length };
}
