import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { logsFolder } from '@hopline/local-cluster';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { count, flag, parsed } from '../command/options.ts';
import { optional } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { jsonLine, type LogLine, parseLogLine, showLogLine } from './log-line.ts';

/** Past lines that are printed without --lines. */
const LINES_DEFAULT = 100;
const LINES_MAX = 100_000;
const FOLLOW_POLL_MS = 250;
/** Bytes read of one log at a time. Only the end of a longer log is read, because it has the newest lines. */
const READ_BYTES_MAX = 4 * 1024 * 1024;

/** Services of a local cluster, for completions. Agents also have logs, under their names. */
const SERVICES = ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier', 'console', 'nats'];

export const logs = command({
  name: 'logs',
  subject: optional('[SERVICE]', 'one service, instance or agent', SERVICES),
  summary: 'prints the logs of the local cluster in order of time',
  details:
    'of all services, or of one: ingress, relay-1, sub-agent, the name of an agent; --json prints one object a line, even for lines that are text',
  asksNoServer: true,
  options: {
    follow: flag('prints new lines until Ctrl-C', { short: 'f' }),
    lines: parsed('N', `number of past lines, default ${LINES_DEFAULT}`, count({ min: 0, max: LINES_MAX })),
  },
  // Reads the files of the logs, which remain after the cluster has ended.
  async run({ subject: service, options }, { json, output, environment, signal }) {
    const { follow, lines = LINES_DEFAULT } = options;
    const folder = logsFolder(environment);
    const instances = instancesOf(folder, service);
    if (instances.length === 0) {
      const all = instancesOf(folder, undefined);
      throw new UsageError(`there is no log of ${service ?? 'any service'}; there are ${all.join(', ') || 'none'}`);
    }
    const width = Math.max(...instances.map(name => name.length));
    const show = (line: LogLine) => output.line(json ? jsonLine(line) : showLogLine(line, instances.length > 1 ? width : 0));
    const readers = new Map(instances.map(name => [name, new LogReader(folder, name)]));
    // A process that was killed may have left half a line.
    const past = inOrder([...readers.values()].flatMap(reader => [...reader.read(), ...(follow ? [] : reader.rest())]));
    for (const line of past.slice(Math.max(0, past.length - lines))) show(line);
    if (!follow) return EXIT.ok;
    while (!signal.aborted) {
      await sleep(FOLLOW_POLL_MS, undefined, { signal }).catch(() => {});
      // Looks for new logs, because a service may start later.
      for (const name of instancesOf(folder, service)) if (!readers.has(name)) readers.set(name, new LogReader(folder, name));
      for (const line of inOrder([...readers.values()].flatMap(reader => reader.read()))) show(line);
    }
    return EXIT.interrupted;
  },
});

function instancesOf(folder: string, service: string | undefined): string[] {
  const names = readdirSync(folder)
    .filter(name => name.endsWith('.log'))
    .map(name => name.slice(0, -'.log'.length))
    .sort();
  if (service === undefined) return names;
  const isOf = (name: string) => name === service || name === `sub-agent-${service}` || /^(.*)-\d+$/.exec(name)?.[1] === service;
  return names.filter(name => isOf(name) || (service === 'sub-agent' && name.startsWith('sub-agent-')));
}

function inOrder(lines: LogLine[]): LogLine[] {
  return lines.sort((a, b) => a.time - b.time);
}

/** Reads the part that was added to a log since the last read. */
class LogReader {
  readonly #path: string;
  readonly #instance: string;
  #offset = -1;
  /** The log was longer than READ_BYTES_MAX, so reading began in the middle of a line. */
  #isWithinLine = false;
  #rest: Buffer = Buffer.alloc(0);
  #time = 0;

  constructor(folder: string, instance: string) {
    this.#path = join(folder, `${instance}.log`);
    this.#instance = instance;
  }

  /** Complete lines. A line without a time gets the time of the line before it. */
  read(): LogLine[] {
    const bytes = Buffer.concat([this.#rest, this.#readBytes()]);
    const end = bytes.lastIndexOf(0x0a) + 1;
    this.#rest = bytes.subarray(end);
    const lines = bytes.subarray(0, end).toString('utf8').split('\n').slice(0, -1);
    if (this.#isWithinLine && end > 0) {
      lines.shift();
      this.#isWithinLine = false;
    }
    return lines.map(text => this.#lineOf(text));
  }

  /** The last line, if it has no line end. */
  rest(): LogLine[] {
    return this.#rest.length === 0 || this.#isWithinLine ? [] : [this.#lineOf(this.#rest.toString('utf8'))];
  }

  #lineOf(text: string): LogLine {
    const line = parseLogLine(this.#instance, text, this.#time);
    this.#time = line.time;
    return line;
  }

  #readBytes(): Buffer {
    let file: number;
    try {
      file = openSync(this.#path, 'r');
    } catch {
      return Buffer.alloc(0);
    }
    try {
      const { size } = fstatSync(file);
      // The launcher empties a log that has grown too long.
      if (this.#offset > size) this.#offset = 0;
      if (this.#offset < 0) {
        this.#offset = Math.max(0, size - READ_BYTES_MAX);
        this.#isWithinLine = this.#offset > 0;
      }
      const bytes = Buffer.alloc(Math.min(size - this.#offset, READ_BYTES_MAX));
      this.#offset += readSync(file, bytes, 0, bytes.length, this.#offset);
      return bytes;
    } finally {
      closeSync(file);
    }
  }
}
