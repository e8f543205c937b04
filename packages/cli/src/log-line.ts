import { isObject } from '@hopline/a2a';

/** A line of a log. `record`: its members, where the line is JSON. `time`: epoch milliseconds. */
export type LogLine = { instance: string; text: string; time: number; record?: Readonly<Record<string, unknown>> };

/** Members that stand elsewhere in a shown line. */
const SHOWN_APART = new Set(['time', 'level', 'service', 'instance', 'msg', 'err']);
/** nats-server: `[pid] 2026/11/22 08:02:11.123456 [INF] …` */
const NATS_TIME = /^\[\d+\] (\d{4})\/(\d\d)\/(\d\d) (\d\d:\d\d:\d\d\.\d{3})\d*/;

/** @param timeBefore the time of a line that has none */
export function parseLogLine(instance: string, text: string, timeBefore: number): LogLine {
  const nats = NATS_TIME.exec(text);
  const record = parseRecord(text);
  const written = nats ? `${nats[1]}-${nats[2]}-${nats[3]}T${nats[4]}` : record?.time;
  const time = typeof written === 'string' ? Date.parse(written) : Number.NaN;
  return { instance, text, time: Number.isNaN(time) ? timeBefore : time, ...(record && { record }) };
}

/** The line for a person: local time, instance, level, message and the other members. `width` 0: without the instance. */
export function showLogLine({ instance, text, time, record }: LogLine, width: number): string {
  const head = [time === 0 ? '' : timeOfDay(time), width === 0 ? '' : instance.padEnd(width)].filter(part => part !== '');
  if (record === undefined || typeof record.msg !== 'string')
    return [...head, text.replace(NATS_TIME, '').trimStart()].join('  ');
  const members = Object.entries(record).filter(([name]) => !SHOWN_APART.has(name));
  const shown = members.map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const error = isObject(record.err) && typeof record.err.message === 'string' ? [`: ${record.err.message}`] : [];
  return [...head, `${String(record.level ?? '').padEnd(5)} ${record.msg}${error.join('')}`, ...shown].join('  ');
}

/** Local time of day. */
export function timeOfDay(time: number): string {
  const date = new Date(time);
  const two = (value: number, digits = 2) => String(value).padStart(digits, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}

function parseRecord(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const record: unknown = JSON.parse(text);
    return isObject(record) ? record : undefined;
  } catch {
    return undefined;
  }
}
