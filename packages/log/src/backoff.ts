/**
 * Exponential backoff with full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/): a random wait
 * below `baseMs` doubled per failure, at most `maxMs`, at least `minMs`. Jitter keeps a hundred writers from returning in the
 * same instant. `failures` is 1 after the first failure.
 */
export function backoffMs(failures: number, baseMs: number, maxMs: number, minMs = 0): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.max(minMs, Math.random() * ceiling);
}
