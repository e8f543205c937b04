import type { Parameters } from 'fast-check';

/**
 * How the fuzzers run. A failure prints its seed and path; `HOPLINE_FUZZ_SEED=<seed>` (and `HOPLINE_FUZZ_PATH=<path>`, with the one test) plays it again.
 * `HOPLINE_FUZZ_FACTOR=20` tries twenty times as much.
 */
const { HOPLINE_FUZZ_SEED: seed, HOPLINE_FUZZ_PATH: path, HOPLINE_FUZZ_FACTOR: factor = '1' } = process.env;

/** No request may take longer to be answered, on a machine that does eight other things; milliseconds. */
export const ANSWER_MS_MAX = 15_000;

export function runs<T>(count: number): Parameters<T> {
  const scaled = Math.ceil(count * Number(factor));
  return {
    numRuns: scaled,
    // Shrinking sends requests as well: a failure must be told before the file's time is over.
    interruptAfterTimeLimit: 60_000 * Math.max(1, Number(factor)),
    markInterruptAsFailure: true,
    ...(seed !== undefined && { seed: Number(seed) }),
    ...(path !== undefined && { path }),
  };
}
