/** Members of a log line, as the logger wrote them. */
export type LogRecord = Readonly<Record<string, unknown>>;

/** Members that are shown elsewhere in a line, or are too long for it. For example, the settings at startup are only in the JSON line. */
const SHOWN_APART = new Set(['time', 'level', 'service', 'instance', 'msg', 'err', 'settings']);
/** Levels whose errors are shown with their stack. */
const WITH_STACK = new Set(['error', 'fatal']);
/** Characters that control a terminal, begin a new line, or reorder text. */
const UNSAFE = /(?!\t)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_C}]/gu;

/** The members of a JSON line; undefined for any other text. */
export function parseLogRecord(line: string): LogRecord | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as LogRecord;
  } catch {
    return undefined;
  }
}

/**
 * A line for a person: level, message, error and the other members as `name=value`, followed by the stack of an error. Values cannot begin
 * a new line, because their control characters are shown as escapes.
 */
export function showLogRecord(record: LogRecord): string {
  const level = String(record.level ?? '');
  const { message, stack } = (record.err ?? {}) as { message?: unknown; stack?: unknown };
  const fault = typeof message === 'string' ? `: ${message}` : '';
  const members = Object.entries(record).filter(([name]) => !SHOWN_APART.has(name));
  const shown = [`${level.padEnd(5)} ${record.msg}${fault}`, ...members.map(([name, value]) => `${name}=${shownValue(value)}`)];
  const frames = typeof stack === 'string' && WITH_STACK.has(level) ? stack.split('\n').filter(line => /^\s+at /.test(line)) : [];
  return [shown.join('  '), ...frames].map(printable).join('\n');
}

/** Replaces characters that control a terminal with JSON escapes. */
export function printable(text: string): string {
  return text.replace(UNSAFE, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Local time of day. */
export function timeOfDay(time: number): string {
  const date = new Date(time);
  const two = (value: number, digits = 2) => String(value).padStart(digits, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}

/** Quotes a value with a space, because otherwise its end would be unclear. */
function shownValue(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
