import { RETRY_AFTER_MS_MAX, RETRY_MS_BASE, RETRY_MS_MAX } from './limits.ts';

/** How long a provider wants to be left alone, milliseconds: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, 10.2.3). */
export function retryAfterMs(headers: Readonly<Record<string, string>>, nowMs: number): number | undefined {
  const ms = Number(headers['retry-after-ms'] ?? Number.NaN);
  if (Number.isFinite(ms) && ms >= 0) return ms;
  const after = headers['retry-after'];
  if (after === undefined) return undefined;
  const seconds = Number(after);
  const wait = Number.isNaN(seconds) ? Date.parse(after) - nowMs : seconds * 1_000;
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

/**
 * Milliseconds before the next try, after `failures` of them; undefined when the provider asks for more than RETRY_AFTER_MS_MAX. What it asks for is a lower bound, and jitter
 * is added: a hundred turns that were refused in the same moment must not return in the same moment.
 */
export function retryDelayMs(failures: number, askedMs: number | undefined, random: () => number): number | undefined {
  if (askedMs !== undefined && askedMs > RETRY_AFTER_MS_MAX) return undefined;
  const ceiling = Math.min(RETRY_MS_MAX, RETRY_MS_BASE * 2 ** (failures - 1));
  return Math.round((askedMs ?? 0) + random() * ceiling);
}
