import { type ParseArgsConfig, parseArgs } from 'node:util';
import { stateWord, TASK_STATES, type TaskState } from '@hopline/a2a';
import type { CommandName, HELP } from './help.ts';
import { UsageError } from './usage-error.ts';

export const URL_DEFAULT = 'http://127.0.0.1:8000/';
const LIST_LIMIT_DEFAULT = 20;
const LIST_LIMIT_MAX = 10_000;

export type Invocation =
  | { help: keyof typeof HELP }
  | {
      command: CommandName;
      /** The text of `ask`, the file of `agent`, the task id of other commands. */
      subject: string | undefined;
      url: string;
      json: boolean;
      agent: string | undefined;
      context: string | undefined;
      task: string | undefined;
      cursor: string | undefined;
      state: TaskState | undefined;
      /** 1 to LIST_LIMIT_MAX. */
      limit: number;
      name: string | undefined;
      export: string | undefined;
    };

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const COMMON = { url: text, json: flag, help: { ...flag, short: 'h' } } as const;

/** The options of each command, in addition to COMMON, and the number of its subjects. */
const COMMANDS = {
  ask: { options: { agent: text, context: text, task: text }, subjects: 'at most one' },
  follow: { options: { cursor: text }, subjects: 'one' },
  list: { options: { context: text, state: text, limit: text }, subjects: 'none' },
  get: { options: {}, subjects: 'one' },
  cancel: { options: {}, subjects: 'one' },
  trace: { options: {}, subjects: 'one' },
  card: { options: {}, subjects: 'none' },
  agent: { options: { name: text, export: text }, subjects: 'one' },
} as const satisfies Record<CommandName, { options: ParseArgsConfig['options']; subjects: string }>;

/** Parses the command line. `defaultUrl` is HOPLINE_URL. Throws UsageError. */
export function parseArguments(argv: readonly string[], defaultUrl: string | undefined): Invocation {
  const [first, ...args] = argv;
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') return { help: '' };
  if (!isCommand(first)) throw new UsageError(`unknown command ${first}; see hopline --help`);
  const { options, subjects } = COMMANDS[first];
  const { values, positionals } = readOptions(first, args, options);
  if (values.help === true) return { help: first };
  const [subject, ...more] = positionals;
  if (more.length > 0 || (subjects === 'none' && subject !== undefined)) throw new UsageError(tooManyArguments(first));
  if (subjects === 'one' && !subject)
    throw new UsageError(
      `${first} requires ${first === 'agent' ? 'the file of an agent' : 'a task id'}; see hopline ${first} --help`,
    );
  const {
    agent,
    context,
    task,
    cursor,
    state,
    limit,
    name,
    export: exported,
    url,
    json,
  } = values as Partial<Record<string, string>>;
  return {
    command: first,
    subject,
    url: parseUrl(url ?? (defaultUrl || URL_DEFAULT)),
    json: json !== undefined,
    agent,
    context,
    task,
    cursor,
    state: parseState(state),
    limit: parseLimit(limit),
    name,
    export: exported,
  };
}

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}

function readOptions(command: CommandName, args: string[], options: NonNullable<ParseArgsConfig['options']>) {
  try {
    return parseArgs({ args, options: { ...options, ...COMMON }, allowPositionals: true });
  } catch (thrown) {
    // Removes Node's explanation of positionals that begin with a dash.
    const reason = thrown instanceof Error ? thrown.message.replace(/\. To specify.*$/s, '') : String(thrown);
    throw new UsageError(`${reason}; see hopline ${command} --help`);
  }
}

function tooManyArguments(command: CommandName): string {
  const expected =
    command === 'ask'
      ? 'one text (put it in quotes)'
      : command === 'agent'
        ? 'one file'
        : COMMANDS[command].subjects === 'none'
          ? 'no arguments'
          : 'one task id';
  return `${command} takes ${expected}; see hopline ${command} --help`;
}

function parseState(word: string | undefined): TaskState | undefined {
  if (word === undefined) return undefined;
  const state = TASK_STATES.find(one => stateWord(one) === word.toLowerCase());
  if (state === undefined)
    throw new UsageError(`--state must be one of ${TASK_STATES.map(stateWord).join(', ')}; see hopline list --help`);
  return state;
}

function parseLimit(text: string | undefined): number {
  if (text === undefined) return LIST_LIMIT_DEFAULT;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LIST_LIMIT_MAX) return limit;
  throw new UsageError(`--limit must be a number from 1 to ${LIST_LIMIT_MAX}; see hopline list --help`);
}

function parseUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new UsageError('the URL of the server must begin with http:// or https://');
}
