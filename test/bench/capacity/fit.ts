/** A load and what it cost. */
export type Point = { load: number; cost: number };

/** `cost = fixed + each * load`. Neither is negative. */
export type Line = { fixed: number; each: number };

/**
 * The line with the smallest sum of squared relative errors, so that an error of a tenth counts the same for a small and for a large load.
 * Throws RangeError unless there are two different loads.
 */
export function fitLine(points: readonly Point[]): Line {
  if (new Set(points.map(({ load }) => load)).size < 2) throw new RangeError('a line needs two different loads');
  // Normal equations of (fixed + each * load) / cost = 1.
  let [ones, loads, squares, right, rightLoads] = [0, 0, 0, 0, 0];
  for (const { load, cost } of points) {
    const weight = 1 / Math.max(cost, Number.EPSILON) ** 2;
    ones += weight;
    loads += weight * load;
    squares += weight * load * load;
    right += weight * cost;
    rightLoads += weight * load * cost;
  }
  const determinant = ones * squares - loads * loads;
  const fixed = (right * squares - rightLoads * loads) / determinant;
  const each = (rightLoads * ones - right * loads) / determinant;
  if (fixed < 0) return { fixed: 0, each: rightLoads / squares };
  if (each < 0) return { fixed: right / ones, each: 0 };
  return { fixed, each };
}

export function costOf({ fixed, each }: Line, load: number): number {
  return fixed + each * load;
}

/** Share by which the line misses the point, 0 or more. */
export function errorOf(line: Line, { load, cost }: Point): number {
  return Math.abs(costOf(line, load) - cost) / cost;
}
