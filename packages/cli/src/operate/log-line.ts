import { type LogRecord, parseLogRecord, printable, showLogRecord, timeOfDay } from '@hopline/telemetry/log-line';

/** A line of a log. `record`: its members, if the line is JSON. `time`: epoch milliseconds. */
export type LogLine = { instance: string; text: string; time: number; record?: LogRecord };

/** nats-server: `[pid] 2026/11/22 08:02:11.123456 [INF] …` */
const NATS_TIME = /^\[\d+\] (\d{4})\/(\d\d)\/(\d\d) (\d\d:\d\d:\d\d\.\d{3})\d*/;

/** @param timeBefore time for a line that has none */
export function parseLogLine(instance: string, text: string, timeBefore: number): LogLine {
  const nats = NATS_TIME.exec(text);
  const record = parseLogRecord(text);
  const written = nats ? `${nats[1]}-${nats[2]}-${nats[3]}T${nats[4]}` : record?.time;
  const time = typeof written === 'string' ? Date.parse(written) : Number.NaN;
  return { instance, text, time: Number.isNaN(time) ? timeBefore : time, ...(record && { record }) };
}

const NATS_LEVEL = /^\[(\w{3})\] /;
/** The levels of nats-server, which writes no JSON. */
const NATS_LEVELS: Readonly<Record<string, string>> = { DBG: 'debug', TRC: 'trace', WRN: 'warn', ERR: 'error', FTL: 'fatal' };

/** A line as JSON: unchanged if it is JSON already, otherwise an object with its time, level and text. */
export function jsonLine({ instance, text, time, record }: LogLine): string {
  if (record !== undefined) return text;
  const rest = text.replace(NATS_TIME, '').trimStart();
  const level = NATS_LEVELS[NATS_LEVEL.exec(rest)?.[1] ?? ''] ?? 'info';
  const msg = rest.replace(NATS_LEVEL, '');
  return JSON.stringify({ ...(time !== 0 && { time: new Date(time).toISOString() }), level, instance, msg });
}

/**
 * Formats the line for a person: local time, instance, and the line as the service would print it on a terminal. `width` 0: without the
 * instance.
 */
export function showLogLine({ instance, text, time, record }: LogLine, width: number): string {
  const head = [time === 0 ? '' : timeOfDay(time), width === 0 ? '' : instance.padEnd(width)].filter(part => part !== '');
  const isRecord = record !== undefined && typeof record.msg === 'string';
  return [...head, isRecord ? showLogRecord(record) : printable(text.replace(NATS_TIME, '').trimStart())].join('  ');
}
