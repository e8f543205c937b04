import { LINE, type Logger, snakeWord } from '@hopline/telemetry';
import type { LogEvent } from './options.ts';

/** A full stream, a missing permission or a defect may cause thousands of events a second. Each kind is logged once in this time. */
const REPEATED_LINE_MS = 10_000;
const REPEATED: ReadonlySet<LogEvent['type']> = new Set(['full', 'denied', 'check-failed']);

const LEVELS: Partial<Record<LogEvent['type'], 'debug' | 'info'>> = {
  reread: 'debug',
  republished: 'debug',
  reconnected: 'info',
  'leader-moved': 'info',
  'layout-added': 'info',
};

/** The log lines for the events of a log. */
export class LogLines {
  readonly #logger: Logger;
  readonly #writtenAtMs = new Map<LogEvent['type'], number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  onEvent(event: LogEvent): void {
    if (REPEATED.has(event.type)) {
      if (performance.now() - (this.#writtenAtMs.get(event.type) ?? Number.NEGATIVE_INFINITY) < REPEATED_LINE_MS) return;
      this.#writtenAtMs.set(event.type, performance.now());
    }
    write(this.#logger, event);
  }
}

function write(logger: Logger, event: LogEvent): void {
  switch (event.type) {
    case 'denied':
    case 'rejected':
      logger.error(`log: ${event.message}`);
      return;
    case 'login-wide':
      logger.warn({ reason: event.why }, LINE.loginWide);
      return;
    case 'account':
      logger.info({ account: event.account, reason: event.why }, LINE.account);
      return;
    case 'streams-lost':
      logger.error({ stream: event.streams.join(', ') }, LINE.streamsLost);
      return;
    case 'creation-refused':
      logger.error({ reason: event.message }, 'missing streams of the log cannot be created again');
      return;
    case 'check-failed':
      logger.error({ err: event.error, reason: event.what }, `log: ${snakeWord(event.type)}`);
      return;
    default:
      logger[LEVELS[event.type] ?? 'warn'](fieldsOf(event), `log: ${snakeWord(event.type)}`);
  }
}

function fieldsOf(event: LogEvent): Record<string, string | number> {
  const reason =
    event.type === 'layout-refused' || event.type === 'server-error'
      ? event.message
      : 'why' in event
        ? event.why
        : 'where' in event
          ? event.where
          : 'what' in event
            ? event.what
            : undefined;
  return {
    ...(reason !== undefined && { reason }),
    ...('server' in event && { server: event.server }),
    ...('stream' in event && { stream: event.stream }),
    ...('begins' in event && {
      shards: event.shards,
      stream_groups: event.groups,
      begins: new Date(event.begins).toISOString(),
    }),
    ...('to' in event && { from: event.from, to: event.to }),
    ...('role' in event && { role: event.role }),
    ...('items' in event && { items: event.items }),
    ...('keptMs' in event && { kept_ms: event.keptMs }),
    ...('count' in event && { count: event.count, subject: event.name }),
  };
}
