/**
 * The second barrier in front of the log. The first one is the type `LogFields`, which has no key for content or credentials; this one
 * is for errors and objects of other people's libraries.
 */
export const REDACTED = '[redacted]';
/** Deeper objects become `[deep]`; levels. */
export const LOG_DEPTH_MAX = 5;
/** Entries of one object or array; the rest is left out. */
export const LOG_ENTRIES_MAX = 64;
/** Longer strings are cut; UTF-16 units. */
export const LOG_STRING_CHARS_MAX = 2048;
/** Stack traces are longer than any other string and end up in incident reports; UTF-16 units. */
export const LOG_STACK_CHARS_MAX = 8192;

/** Compared after lower-casing and removing `-` and `_`, so that `access_token`, `accessToken` and `Access-Token` are one. */
const SECRET_KEYS: ReadonlySet<string> = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'token',
  'accesstoken',
  'refreshtoken',
  'idtoken',
  'bearertoken',
  'apikey',
  'xapikey',
  'password',
  'pass',
  'secret',
  'clientsecret',
  'privatekey',
  'credential',
  'credentials',
  'text',
  'parts',
  'content',
  'prompt',
  'delta',
  'body',
]);

function isSecretKey(key: string): boolean {
  return SECRET_KEYS.has(key.toLowerCase().replaceAll(/[-_]/g, ''));
}

function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax)}…`;
}

/** A copy without values under secret keys, bounded in depth, entries and string length. Errors keep type, message, code, stack, cause. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return cut(value, LOG_STRING_CHARS_MAX);
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? String(value) : value;
  if (depth >= LOG_DEPTH_MAX) return '[deep]';
  if (value instanceof Error) return redactError(value, depth);
  if (Array.isArray(value)) return value.slice(0, LOG_ENTRIES_MAX).map(item => redact(item, depth + 1));
  return redactEntries(value, depth);
}

/** `redact` for the one object whose keys are kept: a log line's fields. */
export function redactEntries(value: object, depth = 0): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, entry] of Object.entries(value).slice(0, LOG_ENTRIES_MAX)) {
    copy[key] = isSecretKey(key) && entry !== undefined && entry !== null ? REDACTED : redact(entry, depth + 1);
  }
  return copy;
}

// Other properties of an error are left out: HTTP clients hang whole requests, headers included, on what they throw.
function redactError(error: Error, depth: number): Record<string, unknown> {
  const code = (error as { code?: unknown }).code;
  return {
    type: error.name,
    message: cut(error.message, LOG_STRING_CHARS_MAX),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(error.stack === undefined ? {} : { stack: cut(error.stack, LOG_STACK_CHARS_MAX) }),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1) }),
  };
}

const URL_USERINFO = /:\/\/[^/\s"\\@]+@/g;
const BEARER = /\b(Bearer|Basic)\s+[\w.~+/=-]+/gi;

/** Removes what only shows by its form: `nats://user:pass@host`, `Bearer eyJ…`. Runs over the finished line, the message included. */
export function scrubLine(line: string): string {
  return line.replace(URL_USERINFO, `://${REDACTED}@`).replace(BEARER, `$1 ${REDACTED}`);
}
