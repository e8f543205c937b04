import { isSpanContextValid, trace } from '@opentelemetry/api';
import { type LevelWithSilent, type Logger as Pino, pino } from 'pino';
import { parseLogRecord, showLogRecord, timeOfDay } from './log-line.ts';
import type { LogKey } from './names.ts';
import { type OwnerNames, ownerFields } from './parties.ts';
import { redactEntries, scrubLine } from './redaction.ts';

export const LOG_LEVELS = [
  'trace',
  'debug',
  'info',
  'warn',
  'error',
  'fatal',
  'silent',
] as const satisfies readonly LevelWithSilent[];
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['auto', 'json', 'pretty'] as const;
/** `auto`: pretty when standard output is a terminal. */
export type LogFormat = (typeof LOG_FORMATS)[number];

export type LogFields = { readonly [K in LogKey]?: string | number | boolean | undefined } & {
  /** An error, logged with type, message, code, stack and cause. */
  readonly err?: unknown;
  /** Effective settings at start, secrets already masked. */
  readonly settings?: Readonly<Record<string, string | number | boolean>>;
};

export interface LogMethod {
  (message: string): void;
  (fields: LogFields, message: string): void;
}

/** Logs transitions and faults. Counts belong in metrics, and times in traces. It must not be called per token. */
export interface Logger {
  readonly trace: LogMethod;
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
  readonly fatal: LogMethod;
  /** A logger that adds `fields` to every line. */
  child(fields: LogFields): Logger;
}

export type LoggerOptions = {
  readonly service: string;
  readonly instance: string;
  readonly level: LogLevel;
  /** Default: `json`. */
  readonly format?: LogFormat;
  /** Receives the lines; standard output by default. */
  readonly destination?: Output;
};

const STDOUT = 1;
/** Lines within this time are combined into one write, because a write costs more than a line. */
export const LINES_DELAY_MS = 20;
/** Characters after which lines are written at once. */
const LINES_CHARS_MAX = 16 * 1024;
/** Characters of lines that wait while standard output cannot be written; further lines are dropped. */
const WAITING_CHARS_MAX = 1024 * 1024;

type Output = { write(line: string): void };

/** Collects lines for one write. Writes at once for a warning or error, together with all earlier lines, and at the end of the process. */
export class LineBuffer implements Output {
  /** Level of the line that is written next. pino sets it for outputs that ask for metadata. */
  lastLevel = 0;
  readonly #output: Output;
  #lines = '';
  #timer: NodeJS.Timeout | undefined;
  readonly flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#lines;
    this.#lines = '';
    if (lines !== '') this.#output.write(lines);
  };

  constructor(output: Output) {
    this.#output = output;
    Object.defineProperty(this, Symbol.for('pino.metadata'), { value: true });
  }

  write(line: string): void {
    this.#lines += line;
    if (this.lastLevel >= pino.levels.values.warn! || this.#lines.length >= LINES_CHARS_MAX) this.flush();
    else this.#timer ??= setTimeout(this.flush, LINES_DELAY_MS);
  }
}

/** Loggers share it, so that their lines stay in order and the process has only one exit listener. */
let standardLines: LineBuffer | undefined;

function standardOutput(): LineBuffer {
  if (standardLines === undefined) {
    standardLines = new LineBuffer(tolerantOutput());
    process.once('exit', standardLines.flush);
  }
  return standardLines;
}

/**
 * Standard output may be a file on a full disk. The service continues, and each later line is also an attempt to write the waiting ones.
 * pino's own `maxLength` would drop a line without trying.
 */
function tolerantOutput(): Output {
  const destination = pino.destination({ dest: STDOUT, sync: true });
  let waitingChars = 0;
  let hasFailed = false;
  destination.on('error', () => {
    hasFailed = true;
  });
  return {
    write: lines => {
      const kept = waitingChars < WAITING_CHARS_MAX ? lines : '';
      hasFailed = false;
      destination.write(kept);
      waitingChars = hasFailed ? waitingChars + kept.length : 0;
    },
  };
}

/** Properties of a root logger that may change while it is in use: further receivers of its lines, its level, and when lines are written. */
type Root = { line: ((line: string) => void) | undefined; setLevel: (level: LogLevel) => void };
const roots = new WeakMap<Logger, Root>();

/**
 * Writes JSON lines with `service`, `instance` and, inside a hop's `run`, `trace_id` and `span_id`, or their pretty form, synchronously
 * from this thread, LINES_DELAY_MS after the first one. pino's default is asynchronous, and reordered the last lines before an exit in one
 * run of five; its worker transports do not survive bundling. The disadvantage of synchronous writes is that the service blocks if its
 * standard output is a pipe that is not read.
 */
export function createLogger(options: LoggerOptions): Logger {
  const root: { line: ((line: string) => void) | undefined } = { line: undefined };
  const { format = 'json' } = options;
  const isPretty = format === 'pretty' || (format === 'auto' && process.stdout.isTTY);
  const settings = {
    level: options.level,
    base: { service: options.service, instance: options.instance },
    timestamp: pino.stdTimeFunctions.isoTime,
    // pino's own serializer would add every property of an error; `formatters.log` has already redacted it.
    serializers: { err: (redacted: unknown) => redacted },
    formatters: { level: (label: string) => ({ level: label }), log: redactEntries },
    hooks: {
      streamWrite: (line: string) => {
        const scrubbed = scrubLine(line);
        root.line?.(scrubbed);
        return isPretty ? prettyLine(scrubbed) : scrubbed;
      },
    },
    mixin: activeTrace,
  };
  const logger = pino(settings, options.destination ?? standardOutput());
  redactChildFields(logger);
  const created = logger as unknown as Logger;
  const setLevel = (level: LogLevel) => {
    logger.level = level;
  };
  roots.set(created, Object.assign(root, { setLevel }));
  return created;
}

/**
 * From now on, calls `line` with each line written by the logger (made by `createLogger`) or one of its children. Undefined stops the
 * calls.
 */
export function onLogLine(log: Logger, line: ((line: string) => void) | undefined): void {
  const root = roots.get(log);
  if (root !== undefined) root.line = line;
}

/** Changes the level of a logger of `createLogger`, and of its children. */
export function setLogLevel(log: Logger, level: LogLevel): void {
  roots.get(log)?.setLevel(level);
}

/**
 * Writes the lines that a logger of `createLogger` or a child of it has collected. Call it before something else is written to the same
 * file, or before work that may end the process.
 */
export function flushLog(log: Logger): void {
  const { flush } = log as Partial<Pick<Pino, 'flush'>>;
  flush?.call(log);
}

/** A child logger that adds `task_id`, and the tenant and the hash of the caller to whom the task belongs, to every line. */
export function taskLogger(log: Logger, taskId: string, owner?: OwnerNames): Logger {
  return log.child({ task_id: taskId, ...ownerFields(owner) });
}

function prettyLine(line: string): string {
  const record = parseLogRecord(line);
  return record === undefined ? line : `${timeOfDay(Date.parse(String(record.time)))}  ${showLogRecord(record)}\n`;
}

function activeTrace(): Record<string, string> {
  const span = trace.getActiveSpan()?.spanContext();
  return span !== undefined && isSpanContextValid(span) ? { trace_id: span.traceId, span_id: span.spanId } : {};
}

// pino formats a child's bindings without `formatters.log`; children inherit the changed method from the root logger.
function redactChildFields(root: Pino): void {
  const child = root.child;
  root.child = function redactedChild(this: Pino, fields: object) {
    return child.call(this, redactEntries(fields));
  } as typeof root.child;
}
