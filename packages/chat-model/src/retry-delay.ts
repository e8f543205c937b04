import { fullJitterMs } from '@hopline/a2a';
import { MODEL_RETRY_AFTER_MS_MAX, RETRY_MS_BASE, RETRY_MS_MAX } from './limits.ts';

/** Reads the provider's delay in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, 10.2.3). */
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
 * Milliseconds before the next attempt, after this number of failures; undefined when the provider's delay exceeds MODEL_RETRY_AFTER_MS_MAX.
 * The provider's delay is a lower bound; the jitter is added to it.
 */
export function retryDelayMs(failures: number, providerMs: number | undefined, random: () => number): number | undefined {
  if (providerMs !== undefined && providerMs > MODEL_RETRY_AFTER_MS_MAX) return undefined;
  return Math.round((providerMs ?? 0) + fullJitterMs(failures, RETRY_MS_BASE, RETRY_MS_MAX, random));
}
