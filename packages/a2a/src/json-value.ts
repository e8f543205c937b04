// Readers of untrusted JSON: each returns undefined for a value that is absent or of another type, and never throws.

export type JsonObject = { [name: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object in a JSON text; undefined for any other text. */
export function parseObject(json: string): JsonObject | undefined {
  try {
    return object(JSON.parse(json));
  } catch {
    return undefined;
  }
}

/** A non-empty string. An empty one counts as absent, because ProtoJSON writes an absent string as `""`. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function object(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

/** A non-empty object, for metadata. */
export function metadata(value: unknown): JsonObject | undefined {
  return isObject(value) && Object.keys(value).length > 0 ? value : undefined;
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The strings of an array; undefined when there are none. */
export function texts(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const found = value.filter(item => typeof item === 'string');
  return found.length > 0 ? found : undefined;
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The members of `members` that are not undefined. */
export function present<T extends object>(members: T): Present<T> {
  const found: Present<T> = {};
  // This runs several times for each token of a remote agent, so building lists of entries would cost more than the rest of the decoding.
  for (const name of Object.keys(members) as (keyof T)[])
    if (members[name] !== undefined) found[name] = members[name] as Exclude<T[keyof T], undefined>;
  return found;
}

/** Largest distance from 1970, in milliseconds, that a `Date` can hold (ECMA-262 21.4.1.1). Formatting a later time throws a RangeError. */
const TIME_MS_MAX = 8.64e15;

/** Whether the value is a time in epoch milliseconds that a `Date` can hold. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= TIME_MS_MAX;
}

/** Levels of nesting accepted in a JSON document. Deeper ones could exhaust the stack of recursive code. */
export const JSON_DEPTH_MAX = 64;

/** True when arrays and objects nest deeper than `depthMax`. The check itself goes no deeper, so it cannot overflow the stack. */
export function isDeeperThan(value: unknown, depthMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (depthMax <= 0) return true;
  if (Array.isArray(value)) return value.some(item => isDeeperThan(item, depthMax - 1));
  // `Object.values` of 80,000 members would take longer than this loop.
  for (const name in value) if (isDeeperThan((value as JsonObject)[name], depthMax - 1)) return true;
  return false;
}
