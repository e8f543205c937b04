import { type ParseArgsConfig, parseArgs } from 'node:util';
import { suggestion } from '@hopline/lifecycle';
import { URL_DEFAULT } from '@hopline/local-cluster';
import type { Command, Given, Option, Options } from './command.ts';
import { flag, text } from './options.ts';
import { UsageError } from './usage-error.ts';

/** A parsed command line: it runs a command, or asks for help (on one command or all) or for the version. */
export type Invocation =
  | { help: Command | undefined }
  | { version: true }
  | { command: Command; given: Given<unknown, Options>; url: string; json: boolean };

/** Options of every command. */
const COMMON_OPTIONS = {
  url: text('URL', `the server (HOPLINE_URL, default ${URL_DEFAULT})`),
  json: flag('one JSON object per line'),
  help: flag('this text', { short: 'h' }),
};

/** All options of a command by their names on the command line, the command's own options first. */
export function optionsOf({ options, asksNoServer, hasNoJson }: Command): [name: string, Option][] {
  const { url, json, help } = COMMON_OPTIONS;
  const all = { ...options, ...(!asksNoServer && { url }), ...(!hasNoJson && { json }), help };
  return Object.entries<Option>(all).map(([key, option]) => [nameOf(key), option]);
}

/** Turns `sameIds` into `same-ids`. */
function nameOf(key: string): string {
  return key.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
}

/** Parses the command line. `defaultUrl` is HOPLINE_URL. Throws UsageError. */
export function parseArguments(
  argv: readonly string[],
  commands: readonly Command[],
  defaultUrl: string | undefined,
): Invocation {
  const commandNamed = (name: string) => {
    const found = commands.find(command => command.name === name || command.alias === name);
    const names = ['help', ...commands.map(command => command.name)];
    if (found === undefined) throw new UsageError(`unknown command ${name}${suggestion(name, names)}; see hopline --help`);
    return found;
  };
  const [first, ...args] = argv;
  if (first === undefined || first === '--help' || first === '-h') return { help: undefined };
  if (first === 'help') return { help: args[0] === undefined ? undefined : commandNamed(args[0]) };
  if (first === '--version' || first === '-v' || first === 'version') return { version: true };
  const command = commandNamed(first);
  const see = `see hopline ${command.name} --help`;
  const { values, words } = wordsOf(command, args, see);
  if (values.has('help')) return { help: command };
  const read = <T>(what: string, parse: () => T): T => {
    try {
      return parse();
    } catch (thrown) {
      throw thrown instanceof UsageError ? new UsageError(`${what} ${thrown.message}; ${see}`) : thrown;
    }
  };
  const readOption = (key: string, option: Option) => read(`--${nameOf(key)}`, () => option.read(values.get(nameOf(key)) ?? []));
  checkExclusions(command, values, see);
  const options = Object.fromEntries(Object.entries(command.options).map(([key, option]) => [key, readOption(key, option)]));
  const subject = read(command.name, () => subjectOf(command, words));
  const url = parseUrl(values.get('url')?.[0] ?? (defaultUrl || URL_DEFAULT));
  return { command, given: { subject, options }, url, json: values.has('json') };
}

type Words = {
  /** The texts of the options that were given; '' for a flag. */
  values: ReadonlyMap<string, readonly string[]>;
  /** All other words. */
  words: readonly string[];
};

function wordsOf(command: Command, args: string[], see: string): Words {
  const config: NonNullable<ParseArgsConfig['options']> = Object.fromEntries(
    optionsOf(command).map(([name, { value, short, multiple }]) => [
      name,
      { type: value === undefined ? 'boolean' : 'string', ...(short && { short }), ...(multiple && { multiple }) },
    ]),
  );
  try {
    const { values, positionals } = parseArgs({ args, options: config, allowPositionals: true });
    const given = Object.entries(values).map(([name, value]) => [name, [value ?? []].flat().map(textOfValue)] as const);
    return { values: new Map(given), words: positionals };
  } catch (thrown) {
    const isUrl = command.asksNoServer === true && args.some(arg => /^--url(?:=|$)/.test(arg));
    throw new UsageError(
      `${isUrl ? `${command.name} does not contact a server, so it has no --url` : parseFault(thrown)}; ${see}`,
    );
  }
}

const textOfValue = (value: string | boolean) => (typeof value === 'string' ? value : '');

/** Rewrites Node's error in the style of the errors here, and drops its explanation of positionals that begin with a dash. */
function parseFault(thrown: unknown): string {
  const fault = thrown instanceof Error ? thrown.message.replace(/\. To specify.*$/s, '') : String(thrown);
  return `${fault.slice(0, 1).toLowerCase()}${fault.slice(1)}`;
}

function checkExclusions(command: Command, values: Words['values'], see: string): void {
  for (const [name, { excludes }] of optionsOf(command)) {
    const other = values.has(name) && excludes?.options.find(option => values.has(option));
    if (!other) continue;
    const why = excludes?.because === undefined ? '' : `: ${excludes.because}`;
    throw new UsageError(`--${name} and --${other} cannot be used together${why}; ${see}`);
  }
}

function subjectOf({ subject }: Command, words: readonly string[]): unknown {
  if (subject === undefined && words.length > 0) throw new UsageError('takes no arguments');
  return subject?.read(words);
}

function parseUrl(given: string): string {
  const { protocol, username, password } = URL.canParse(given) ? new URL(given) : { protocol: '' };
  if (username || password)
    throw new UsageError('the URL of the server must not contain credentials: set HOPLINE_TOKEN or HOPLINE_API_KEY');
  if (/^https?:$/.test(protocol)) return given;
  throw new UsageError('the URL of the server must begin with http:// or https://');
}
