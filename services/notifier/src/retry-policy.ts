import { backoffMs } from '@hopline/log';
import type { RetryClass } from './webhook-client.ts';

export type RetryLimits = {
  /** Attempts at one notification before its webhook is abandoned, including the first. */
  attemptsMax: number;
  /** Upper bounds of the wait after the first failure, and of every wait. */
  retryMsBase: number;
  retryMsMax: number;
  /** A webhook that has failed for this long is abandoned. */
  abandonAfterMs: number;
};

/**
 * Number of attempts if the webhook refuses (4xx, a redirect, a forbidden address). More than one, because the cause may be a deployment in
 * progress.
 */
export const REFUSALS_MAX = 5;
/** Upper bound of Retry-After. */
export const WEBHOOK_RETRY_AFTER_MS_MAX = 60 * 60_000;

type FailedAttempts = { failures: number; failingSince: number; retry: RetryClass; retryAfterMs?: number | undefined };

/** Wait before the retry in milliseconds; undefined: abandon the webhook. `failures` includes the attempt that just failed. */
export function retryWaitMs(
  { failures, failingSince, retry, retryAfterMs = 0 }: FailedAttempts,
  limits: RetryLimits,
  now: number,
): number | undefined {
  if (failures >= attemptsMaxOf(retry, limits)) return undefined;
  const waitMs = backoffMs(failures, limits.retryMsBase, limits.retryMsMax, Math.min(retryAfterMs, WEBHOOK_RETRY_AFTER_MS_MAX));
  return now + waitMs - failingSince > limits.abandonAfterMs ? undefined : Math.ceil(waitMs);
}

function attemptsMaxOf(retry: RetryClass, { attemptsMax }: RetryLimits): number {
  if (retry === 'never') return 0;
  return retry === 'limited' ? Math.min(REFUSALS_MAX, attemptsMax) : attemptsMax;
}
