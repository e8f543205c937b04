import type { Parameters } from 'fast-check';

/** The requests of `npm test` are the same in every run, so that its result depends on the change only. `npm run fuzz` draws new ones. */
const SEED_OF_THE_SUITE = '1';

/**
 * Settings of the fuzzers. A failure prints its seed and path; `HOPLINE_FUZZ_SEED=<seed>` (and `HOPLINE_FUZZ_PATH=<path>`, with the
 * failing test only) replays it. `HOPLINE_FUZZ_FACTOR=20` multiplies the number of runs by twenty.
 */
const { HOPLINE_FUZZ_SEED: seed = SEED_OF_THE_SUITE, HOPLINE_FUZZ_PATH: path, HOPLINE_FUZZ_FACTOR: factor = '1' } = process.env;

/** Limit for each response on a loaded machine. */
export const ANSWER_MS_MAX = 15_000;

export function runs<T>(count: number): Parameters<T> {
  const scaled = Math.ceil(count * Number(factor));
  return {
    numRuns: scaled,
    // Shrinking sends requests as well; a failure must be reported before the timeout of the file. A slow machine makes fewer requests.
    interruptAfterTimeLimit: 60_000 * Math.max(1, Number(factor)),
    markInterruptAsFailure: false,
    seed: Number(seed),
    ...(path !== undefined && { path }),
  };
}
