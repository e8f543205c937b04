import { fullJitterMs, parseRetryAfter } from '@hopline/a2a';
import { MODEL_RETRY_AFTER_MS_MAX, RETRY_MS_BASE, RETRY_MS_MAX } from './limits.ts';

/** The provider's delay in milliseconds: `retry-after-ms`, which OpenAI's client reads first, or `retry-after`. */
export function providerDelayMs(headers: Readonly<Record<string, string>>, nowMs: number): number | undefined {
  const ms = Number(headers['retry-after-ms'] || Number.NaN);
  return Number.isFinite(ms) && ms >= 0 ? ms : parseRetryAfter(headers['retry-after'], headers.date, nowMs);
}

/**
 * Milliseconds before the next attempt, after this number of failures; undefined when the provider's delay exceeds MODEL_RETRY_AFTER_MS_MAX.
 * The provider's delay is a lower bound; the jitter is added to it.
 */
export function retryDelayMs(failures: number, providerMs: number | undefined, random: () => number): number | undefined {
  if (providerMs !== undefined && providerMs > MODEL_RETRY_AFTER_MS_MAX) return undefined;
  return Math.round((providerMs ?? 0) + fullJitterMs(failures, RETRY_MS_BASE, RETRY_MS_MAX, random));
}
