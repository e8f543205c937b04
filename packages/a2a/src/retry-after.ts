/** Longest delay in milliseconds, 24 days: JavaScript's timers fire at once for a longer one. */
const RETRY_AFTER_MS_MAX = 2 ** 31 - 1;

/** Providers of models also send fractions of a second. */
const SECONDS = /^\d+(?:\.\d+)?$/;

/** The three forms of an HTTP date (RFC 9110 5.6.7), and RFC 3339. `Date.parse` by itself would read `-5` and `soon 5` as months of 2001. */
const DATE = /^(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? |\d{4}-\d{2}-\d{2}T)/;
/** The oldest form of an HTTP date is in UTC and does not name it. */
const WITHOUT_ZONE = /^[A-Z][a-z]{2} .*\d{4}$/;

/**
 * The delay of a `Retry-After` header in milliseconds, at most RETRY_AFTER_MS_MAX: seconds or a date (RFC 9110 10.2.3). A date is by the
 * server's clock, from which this machine's may differ by hours, so it is compared with `date`, the response's `Date` header, if there is
 * one. Undefined if the header is absent or malformed. How long to wait at most is the decision of each caller.
 */
export function parseRetryAfter(
  value: string | null | undefined,
  date: string | null | undefined,
  nowMs: number,
): number | undefined {
  const text = value?.trim() ?? '';
  const ms = SECONDS.test(text) ? Number(text) * 1_000 : timeOf(text) - (timeOf(date ?? '') || nowMs);
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), RETRY_AFTER_MS_MAX);
}

/** NaN for text that is not a date. */
function timeOf(text: string): number {
  if (!DATE.test(text)) return Number.NaN;
  return Date.parse(WITHOUT_ZONE.test(text) ? `${text} GMT` : text);
}
