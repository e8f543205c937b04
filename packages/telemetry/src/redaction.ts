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
/** Values of one line. An object whose members refer to each other has more than memory can hold, although each level is bounded. */
export const LOG_VALUES_MAX = 1_000;
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

/** Values that a line may still have. */
type Budget = { left: number };
const newBudget = (): Budget => ({ left: LOG_VALUES_MAX });

/**
 * Copies without the values of secret keys, bounded in depth, entries, values and string length. Errors keep type, message, code, stack,
 * cause. Never throws: the error of a library may have members of any type, and getters that throw.
 */
export function redact(value: unknown, depth = 0, budget = newBudget()): unknown {
  if (budget.left <= 0) return '[more]';
  budget.left -= 1;
  if (typeof value === 'string') return truncate(value, LOG_STRING_CHARS_MAX);
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? String(value) : value;
  if (depth >= LOG_DEPTH_MAX) return '[deep]';
  try {
    if (value instanceof Error) return redactError(value, depth, budget);
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
    if (Array.isArray(value)) return value.slice(0, LOG_ENTRIES_MAX).map(item => redact(item, depth + 1, budget));
    return redactEntries(value, depth, budget);
  } catch {
    return '[unreadable]';
  }
}

/** `redact` for the fields of a log line. */
export function redactEntries(value: object, depth = 0, budget = newBudget()): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, entry] of Object.entries(value).slice(0, LOG_ENTRIES_MAX)) {
    copy[key] = isSecretKey(key) && entry !== undefined && entry !== null ? REDACTED : redact(entry, depth + 1, budget);
  }
  return copy;
}

// Other properties of an error are dropped: HTTP clients attach whole requests, including headers, to the errors they throw.
function redactError(error: Error, depth: number, budget: Budget): Record<string, unknown> {
  const { name, message, code, stack, cause } = error as {
    [member in 'name' | 'message' | 'code' | 'stack' | 'cause']?: unknown;
  };
  return {
    type: redact(name, depth + 1, budget),
    message: redact(message, depth + 1, budget),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof stack === 'string' ? { stack: truncate(stack, LOG_STACK_CHARS_MAX) } : {}),
    ...(cause === undefined ? {} : { cause: redact(cause, depth + 1, budget) }),
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
