import { type Cursor, parseCursor } from '@hopline/events';
import type { Option, Values } from './command.ts';
import { UsageError } from './usage-error.ts';

type More = Pick<Option, 'short' | 'excludes'>;

/** An option without a value. */
export function flag(help: string, more: More = {}): Option<boolean> {
  return { ...more, help, read: texts => texts.length > 0 };
}

/** An option whose value is used as it is. */
export function text(value: string, help: string, values?: Values): Option<string | undefined> {
  return { value, help, ...(values && { values }), read: ([given]) => given };
}

/** Like `text`, but may be given several times. */
export function texts(value: string, help: string): Option<readonly string[]> {
  return { value, multiple: true, help, read: given => given };
}

/** An option whose text `parse` turns into a value. `parse` throws a UsageError such as `must be a number`. */
export function parsed<T>(value: string, help: string, parse: (given: string) => T, values?: Values): Option<T | undefined> {
  return { value, help, ...(values && { values }), read: ([given]) => (given === undefined ? undefined : parse(given)) };
}

/** Like `parsed`, but may be given several times. */
export function parsedAll<T>(value: string, help: string, parse: (given: string) => T): Option<readonly T[]> {
  return { value, multiple: true, help, read: given => given.map(each => parse(each)) };
}

type Bounds = { min: number; max: number };

/** Parses a number within bounds, with at most three decimals. */
export function number({ min, max }: Bounds): (given: string) => number {
  return within({ min, max }, /^\d{1,9}(\.\d{1,3})?$/);
}

/** Parses a whole number within bounds. */
export function count({ min, max }: Bounds): (given: string) => number {
  return within({ min, max }, /^\d{1,9}$/);
}

function within({ min, max }: Bounds, form: RegExp): (given: string) => number {
  return given => {
    const value = form.test(given) ? Number(given) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new UsageError(`must be a number from ${min} to ${max}`);
  };
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Accepts only the forms of ISO 8601, because `Date.parse` takes `5` for a month and `90` for a year. */
const DATE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?)?$/;

/** Parses a duration before now, such as 2h, or a date. A date without a zone is in the zone of this machine. */
export function timeSince(given: string, now = Date.now()): Date {
  const [, length, unit] = /^(\d{1,6})([smhd])$/.exec(given) ?? [];
  if (unit !== undefined) return new Date(now - Number(length) * UNIT_MS[unit as keyof typeof UNIT_MS]);
  // Without a time of day, `Date.parse` would take the date as UTC.
  const ms = DATE.test(given) ? Date.parse(given.length === 10 ? `${given}T00:00` : given.replace(' ', 'T')) : Number.NaN;
  if (Number.isFinite(ms)) return new Date(ms);
  throw new UsageError('must be a duration (30s, 15m, 2h, 7d) or a date (2026-11-22)');
}

/** Parses a duration into milliseconds. */
export function durationMs(given: string): number {
  const [, length, unit] = /^(\d{1,6})(ms|[smhd])$/.exec(given) ?? [];
  if (unit !== undefined) return Number(length) * (unit === 'ms' ? 1 : UNIT_MS[unit as keyof typeof UNIT_MS]);
  throw new UsageError('must be a duration: 500ms, 30s, 15m, 2h, 7d');
}

export const CURSOR_FORM = 'must be a cursor such as 17.42; --json prints one with every event';

/** Parses a cursor of Hopline. */
export function cursor(given: string): Cursor {
  const found = parseCursor(given);
  if (found !== undefined) return found;
  throw new UsageError(CURSOR_FORM);
}
