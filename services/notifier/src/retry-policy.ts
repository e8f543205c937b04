import { backoffMs } from '@hopline/log';
import type { Chance } from './webhook-client.ts';

export type RetryLimits = {
  /** Deliveries of one event before its webhook is given up, the first one included. */
  attemptsMax: number;
  /** Upper edge of the wait after the first failure, and of every wait; milliseconds. */
  retryMsBase: number;
  retryMsMax: number;
  /** A webhook that has taken nothing for this long is given up; milliseconds since the first failure. */
  giveUpMs: number;
};

/** A webhook that refuses (4xx, a redirect, an address that is not allowed) is asked so often before it is given up: what refuses today may be a deployment that is half done. */
export const REFUSALS_MAX = 5;
/** A webhook may ask for so much patience and no more, milliseconds. */
export const RETRY_AFTER_MS_MAX = 60 * 60_000;

export type Failed = { failures: number; failingSince: number; chance: Chance; retryAfterMs?: number | undefined };

/** When to try again, epoch milliseconds; undefined: give up. `failures` counts the one that has just happened. */
export function retryAt(
  { failures, failingSince, chance, retryAfterMs = 0 }: Failed,
  limits: RetryLimits,
  now: number,
): number | undefined {
  const attemptsMax =
    chance === 'none' ? 0 : chance === 'little' ? Math.min(REFUSALS_MAX, limits.attemptsMax) : limits.attemptsMax;
  if (failures >= attemptsMax) return undefined;
  const waitMs = backoffMs(failures, limits.retryMsBase, limits.retryMsMax, Math.min(retryAfterMs, RETRY_AFTER_MS_MAX));
  return now + waitMs - failingSince > limits.giveUpMs ? undefined : Math.ceil(now + waitMs);
}
