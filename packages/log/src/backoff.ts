/**
 * Full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/): a random wait of up to `baseMs` doubled per failure, at most `maxMs`,
 * and never below `minMs`, so that a hundred writers do not return in the same instant. `failures` is 1 after the first one.
 */
export function backoffMs(failures: number, baseMs: number, maxMs: number, minMs = 0): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.max(minMs, Math.random() * ceiling);
}
