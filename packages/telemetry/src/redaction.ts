/*
 * The second barrier in front of the log. The type `LogFields` is the first: it has no key for content or credentials. This one
 * covers errors and objects of third-party libraries.
 */

export const REDACTED = '[redacted]';
/** Levels of nesting below which objects become `[deep]`. */
export const LOG_DEPTH_MAX = 5;
/** Entries of one object or array; further ones are dropped. */
export const LOG_ENTRIES_MAX = 64;
/** Longer strings are truncated. */
export const LOG_STRING_CHARS_MAX = 2048;
/** Stack traces need more room than other strings. */
export const LOG_STACK_CHARS_MAX = 8192;

/** Compared in lower case without `-` and `_`: `access_token`, `accessToken` and `Access-Token` are equal. */
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

function truncate(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax)}…`;
}

/**
 * Copies without the values of secret keys, bounded in depth, entries and string length. Errors keep type, message, code, stack,
 * cause.
 */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return truncate(value, LOG_STRING_CHARS_MAX);
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? String(value) : value;
  if (depth >= LOG_DEPTH_MAX) return '[deep]';
  if (value instanceof Error) return redactError(value, depth);
  if (Array.isArray(value)) return value.slice(0, LOG_ENTRIES_MAX).map(item => redact(item, depth + 1));
  return redactEntries(value, depth);
}

/** `redact` for the fields of a log line. */
export function redactEntries(value: object, depth = 0): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, entry] of Object.entries(value).slice(0, LOG_ENTRIES_MAX)) {
    copy[key] = isSecretKey(key) && entry !== undefined && entry !== null ? REDACTED : redact(entry, depth + 1);
  }
  return copy;
}

// Other properties of an error are dropped: HTTP clients attach whole requests, including headers, to the errors they throw.
function redactError(error: Error, depth: number): Record<string, unknown> {
  const code = (error as { code?: unknown }).code;
  return {
    type: error.name,
    message: truncate(error.message, LOG_STRING_CHARS_MAX),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(error.stack === undefined ? {} : { stack: truncate(error.stack, LOG_STACK_CHARS_MAX) }),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1) }),
  };
}

const URL_USERINFO = /:\/\/[^/\s"\\@]+@/g;
const BEARER = /\b(Bearer|Basic)\s+[\w.~+/=-]+/gi;

/**
 * Removes credentials that are recognized by their form (`nats://user:pass@host`, `Bearer eyJ…`) from a finished line, including its
 * message.
 */
export function scrubLine(line: string): string {
  return line.replace(URL_USERINFO, `://${REDACTED}@`).replace(BEARER, `$1 ${REDACTED}`);
}
