import { type ParseArgsConfig, parseArgs } from 'node:util';
import { stateWord, TASK_STATES, type TaskState } from '@hopline/a2a';
import { type Cursor, parseCursor } from '@hopline/events';
import { URL_DEFAULT } from '@hopline/local-cluster';
import { COMMANDS, type Command, type CommandName, isCommand, optionsOf } from './commands.ts';
import { LOG_LINES_DEFAULT, LOG_LINES_MAX } from './logs.ts';
import { UsageError } from './usage-error.ts';

const LIST_LIMIT_DEFAULT = 20;
const LIST_LIMIT_MAX = 10_000;
/** The bounds of a setting are checked where it is used. */
const SETTING_MAX = 1_000_000;
const SAMPLE_MAX = 10_000_000;
/** Messages of a task, as the server bounds them. */
const TURNS_MAX = 256;

export type Invocation =
  | { help: CommandName | '' }
  | { version: true }
  | {
      command: CommandName;
      /** The text of `ask`, the file of `agent`, the task id of other commands. */
      subject: string | undefined;
      /** Of a command that takes several. */
      subjects: readonly string[];
      url: string;
      json: boolean;
      agent: string | undefined;
      context: string | undefined;
      continue: boolean;
      task: string | undefined;
      cursor: string | undefined;
      out: string | undefined;
      answer: readonly string[];
      state: TaskState | undefined;
      text: string | undefined;
      /** Milliseconds. */
      longer: number | undefined;
      since: Date | undefined;
      /** 1 to LIST_LIMIT_MAX. */
      limit: number;
      watch: boolean;
      follow: boolean;
      /** 0 to LOG_LINES_MAX. */
      lines: number;
      nats: boolean;
      /** `trace`: every chunk. */
      chunks: boolean;
      html: string | undefined;
      name: string | undefined;
      packages: string | undefined;
      export: string | undefined;
      output: string | undefined;
      inputs: boolean;
      facts: boolean;
      redact: boolean;
      all: boolean;
      sample: number | undefined;
      eventCosts: readonly number[];
      holdMaxes: readonly number[];
      profile: string | undefined;
      yes: boolean;
      /** 1-based. */
      fromTurn: number;
      file: string | undefined;
      compare: boolean;
      /** Factor of the recorded speed; infinite: without waiting. */
      pace: number;
      /** `fork`: the point at which the conversation goes on. */
      at: Cursor | undefined;
      from: Cursor | undefined;
      to: Cursor | undefined;
      sameIds: boolean;
      endOpen: boolean;
      tenant: string | undefined;
      /** Of the owner of imported tasks. */
      ownerSubject: string | undefined;
      port: number;
      /** 0: a free one. */
      grpcPort: number;
      host: string;
      match: 'text' | 'any';
      fault: string | undefined;
    };

/** Parses the command line. `defaultUrl` is HOPLINE_URL. Throws UsageError. */
export function parseArguments(argv: readonly string[], defaultUrl: string | undefined, now = Date.now()): Invocation {
  const [first, ...args] = argv;
  if (first === undefined || first === '--help' || first === '-h') return { help: '' };
  if (first === 'help') return { help: args[0] === undefined ? '' : commandNamed(args[0]) };
  if (first === '--version' || first === '-v' || first === 'version') return { version: true };
  const command = commandNamed(first);
  const { values, positionals } = readOptions(command, args);
  if (values.help === true) return { help: command };
  const text = (name: string) => values[name] as string | undefined;
  const flag = (name: string) => values[name] === true;
  const numbers = (name: string) =>
    ((values[name] as string[] | undefined) ?? []).map(one => parseNumber(command, name, one, { min: 0, max: SETTING_MAX })!);
  checkConversation(values);
  if (values.nats === true && values.url !== undefined)
    throw new UsageError(`--nats and --url exclude each other: NATS_URL names the NATS server; see hopline ${command} --help`);
  return {
    command,
    subject: subjectOf(command, positionals),
    subjects: takesMany(command) ? positionals : [],
    url: parseUrl(text('url') ?? (defaultUrl || URL_DEFAULT)),
    json: flag('json'),
    agent: text('agent'),
    context: text('context'),
    continue: flag('continue'),
    task: text('task'),
    cursor: parseHeaderCursor(text('cursor')),
    out: text('out'),
    answer: (values.answer as string[] | undefined) ?? [],
    state: parseState(text('state')),
    text: text('text'),
    longer: parseDuration('longer', text('longer')),
    since: parseSince(text('since'), now),
    limit: parseCount(command, 'limit', text('limit'), { min: 1, max: LIST_LIMIT_MAX }) ?? LIST_LIMIT_DEFAULT,
    watch: flag('watch'),
    follow: flag('follow'),
    lines: parseCount(command, 'lines', text('lines'), { min: 0, max: LOG_LINES_MAX }) ?? LOG_LINES_DEFAULT,
    nats: flag('nats'),
    chunks: flag('chunks'),
    html: text('html'),
    name: text('name'),
    packages: text('packages'),
    export: text('export'),
    output: text('output'),
    inputs: flag('inputs'),
    facts: flag('facts'),
    redact: flag('redact'),
    all: flag('all'),
    sample: parseCount(command, 'sample', text('sample'), { min: 1, max: SAMPLE_MAX }),
    eventCosts: numbers('event-cost'),
    holdMaxes: numbers('hold-max'),
    profile: text('profile'),
    yes: flag('yes'),
    fromTurn: parseCount(command, 'from-turn', text('from-turn'), { min: 1, max: TURNS_MAX }) ?? 1,
    file: text('file'),
    compare: flag('compare'),
    pace: parsePace(text('pace')),
    at: parseCursorOption('at', text('at')),
    from: parseCursorOption('from', text('from')),
    to: parseCursorOption('to', text('to')),
    sameIds: flag('same-ids'),
    endOpen: flag('end-open'),
    tenant: text('tenant'),
    ownerSubject: text('subject'),
    port: parsePort('port', text('port'), PORT_DEFAULT),
    grpcPort: parsePort('grpc-port', text('grpc-port'), 0),
    host: text('host') ?? '127.0.0.1',
    match: parseMatch(text('match')),
    fault: text('fault'),
  };
}

function commandNamed(name: string): CommandName {
  if (isCommand(name)) return name;
  throw new UsageError(`unknown command ${name}; see hopline --help`);
}

function readOptions(command: CommandName, args: string[]) {
  const options: NonNullable<ParseArgsConfig['options']> = Object.fromEntries(
    Object.entries(optionsOf(command)).map(([name, { value, short, multiple }]) => [
      name,
      { type: value === undefined ? 'boolean' : 'string', ...(short && { short }), ...(multiple && { multiple }) },
    ]),
  );
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (thrown) {
    const { asksNoServer }: Command = COMMANDS[command];
    const isUrl = asksNoServer === true && args.some(arg => /^--url(?:=|$)/.test(arg));
    const reason = isUrl ? `${command} asks no server, so it takes no --url` : reasonOf(thrown);
    throw new UsageError(`${reason}; see hopline ${command} --help`);
  }
}

/** Node's sentence as errors here begin, without its explanation of positionals that begin with a dash. */
function reasonOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message.replace(/\. To specify.*$/s, '') : String(thrown);
  return `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`;
}

function takesMany(command: CommandName): boolean {
  const { subjectIs }: Command = COMMANDS[command];
  return subjectIs?.many === true;
}

function subjectOf(command: CommandName, positionals: readonly string[]): string | undefined {
  const { subjectIs }: Command = COMMANDS[command];
  const { words = 1 } = subjectIs ?? {};
  const subject = positionals.length < words ? undefined : positionals.slice(0, words).join(' ');
  const more = subjectIs?.many ? [] : positionals.slice(words);
  const see = `see hopline ${command} --help`;
  if (more.length > 0 || (subjectIs === undefined && subject !== undefined))
    throw new UsageError(`${command} takes ${subjectIs?.text ?? 'no arguments'}; ${see}`);
  if (subjectIs?.required && !subject) throw new UsageError(`${command} requires ${subjectIs.text}; ${see}`);
  if (Array.isArray(subjectIs?.values) && subject !== undefined && !subjectIs.values.includes(subject))
    throw new UsageError(`${command} takes ${subjectIs.text}; ${see}`);
  return subject;
}

/** A conversation is named once: by its id, by the last one, or by a task of it. */
function checkConversation(values: Readonly<Record<string, unknown>>): void {
  const given = ['context', 'continue', 'task'].filter(name => values[name] !== undefined);
  if (values.continue !== undefined && given.length > 1)
    throw new UsageError(`${given.map(name => `--${name}`).join(' and ')} exclude each other; see hopline ask --help`);
}

function parseState(word: string | undefined): TaskState | undefined {
  if (word === undefined) return undefined;
  const state = TASK_STATES.find(one => stateWord(one) === word.toLowerCase());
  if (state === undefined)
    throw new UsageError(`--state must be one of ${TASK_STATES.map(stateWord).join(', ')}; see hopline list --help`);
  return state;
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** The forms of ISO 8601 alone: `Date.parse` takes `5` for a month and `90` for a year. */
const DATE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?)?$/;

/** A duration before now, such as 2h, or a date; without a zone that of this machine. */
function parseSince(text: string | undefined, now: number): Date | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (unit !== undefined) return new Date(now - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]);
  // A day alone would be one of UTC.
  const ms = DATE.test(text) ? Date.parse(text.length === 10 ? `${text}T00:00` : text.replace(' ', 'T')) : Number.NaN;
  if (Number.isFinite(ms)) return new Date(ms);
  throw new UsageError('--since must be a duration (30s, 15m, 2h, 7d) or a date (2026-11-22); see hopline list --help');
}

function parseDuration(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,6})(ms|[smhd])$/.exec(text) ?? [];
  if (unit !== undefined) return Number(count) * (unit === 'ms' ? 1 : UNIT_MS[unit as keyof typeof UNIT_MS]);
  throw new UsageError(`--${option} must be a duration: 500ms, 30s, 15m, 2h, 7d`);
}

const PACE_MIN = 0.01;
const PACE_MAX = 10_000;

function parsePace(text: string | undefined): number {
  if (text === undefined || text === 'recorded') return 1;
  if (text === 'max') return Number.POSITIVE_INFINITY;
  const [, factor] = /^(\d{1,5}(?:\.\d{1,3})?)x$/.exec(text) ?? [];
  const pace = Number(factor);
  if (pace >= PACE_MIN && pace <= PACE_MAX) return pace;
  throw new UsageError(`--pace must be recorded, max, or a factor from ${PACE_MIN}x to ${PACE_MAX}x; see hopline replay --help`);
}

function parseCursorOption(name: string, text: string | undefined): Cursor | undefined {
  if (text === undefined) return undefined;
  const cursor = parseCursor(text);
  if (cursor !== undefined) return cursor;
  throw new UsageError(`--${name} must be a cursor such as 17.42; --json prints one with every event`);
}

/** Other servers than Hopline have cursors of other forms; what is no value of a header would end as an error of the network. */
function parseHeaderCursor(text: string | undefined): string | undefined {
  if (text === undefined || /^[\x21-\x7e]+$/.test(text)) return text;
  throw new UsageError('--cursor must be a cursor such as 17.42; --json prints one with every event; see hopline follow --help');
}

const PORT_DEFAULT = 8_000;
const PORT_MAX = 65_535;

function parsePort(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= PORT_MAX) return port;
  throw new UsageError(`--${name} must be a number from 0 to ${PORT_MAX}; see hopline serve --help`);
}

function parseMatch(text = 'text'): 'text' | 'any' {
  if (text === 'text' || text === 'any') return text;
  throw new UsageError('--match must be text or any; see hopline serve --help');
}

/** A whole number. */
function parseCount(
  command: CommandName,
  option: string,
  text: string | undefined,
  bounds: { min: number; max: number },
): number | undefined {
  // What has a fraction fails as what is no number does.
  return parseNumber(command, option, text?.includes('.') ? '' : text, bounds);
}

function parseNumber(
  command: CommandName,
  option: string,
  text: string | undefined,
  { min, max }: { min: number; max: number },
): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,9}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new UsageError(`--${option} must be a number from ${min} to ${max}; see hopline ${command} --help`);
}

function parseUrl(text: string): string {
  const { protocol, username, password } = URL.canParse(text) ? new URL(text) : { protocol: '' };
  if (username || password)
    throw new UsageError('the URL of the server must not contain credentials: set HOPLINE_TOKEN or HOPLINE_API_KEY');
  if (/^https?:$/.test(protocol)) return text;
  throw new UsageError('the URL of the server must begin with http:// or https://');
}
