/**
 * Exponential backoff with full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/): a random wait below
 * `baseMs`, doubled per failure after the first, at most `maxMs`. Jitter keeps clients that failed together from returning together.
 * Callers add a delay that a server requests. `random` returns 0 to 1; the package has no source of randomness.
 */
export function fullJitterMs(failures: number, baseMs: number, maxMs: number, random: () => number): number {
  return random() * Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30));
}
