import type { Readable } from 'node:stream';
import type { Client } from '@hopline/client';
import type { OwnCommand } from '@hopline/local-cluster';
import type { Output, Sink } from '@hopline/terminal';
import type { Conversations } from '../ask/conversations.ts';
import type { ExitCode } from './exit-code.ts';

/** For completion: the only values, or that the value is a path. */
export type Values = readonly string[] | 'files';

/** An option. Its name on the command line is its key in `options`: `sameIds` is `--same-ids`. */
export type Option<T = unknown> = {
  /** Its value in the help; absent: a flag without a value. */
  value?: string;
  short?: string;
  /** May be given several times. */
  multiple?: true;
  help: string;
  values?: Values;
  /** Options that cannot be given beside this one, and why. */
  excludes?: { options: readonly string[]; because?: string };
  /** Makes the value of the given texts: none, one, or with `multiple` any number. Throws UsageError: what the value must be. */
  read(texts: readonly string[]): T;
};

export type Options = Readonly<Record<string, Option>>;

/** The words of a command line beside its options. */
export type Subject<T = unknown> = {
  /** In the help, such as `[TASK|FILE…]`. */
  usage: string;
  values?: Values;
  /** Makes the subject of the words. Throws UsageError: what the command takes or requires. */
  read(words: readonly string[]): T;
};

/** The values of a command's options. */
export type OptionValues<O extends Options> = { readonly [Name in keyof O]: O[Name] extends Option<infer T> ? T : never };

/** The values that a command line gives to its command. */
export type Given<S, O extends Options> = { subject: S; options: OptionValues<O> };

/** A command: all that the parser, the help, the reference and the completions know of it. */
export type Command<S = unknown, O extends Options = Options> = {
  name: string;
  /** Absent: it takes none. */
  subject?: Subject<S>;
  summary: string;
  /** Continues the summary in the help of the command. */
  details?: string;
  options: O;
  /** It asks no server, so it takes no --url. */
  asksNoServer?: true;
  /** The end of its help. */
  notes?: string;
  run(given: Given<S, O>, context: CommandContext): Promise<ExitCode>;
};

/** Checks a command against its own types: `run` gets what `subject` and `options` read. */
export function command<S = undefined, O extends Options = Options>(definition: Command<S, O>): Command<S, O> {
  return definition;
}

/** The process in which a command runs. */
export type ProcessContext = {
  environment: Readonly<Record<string, string | undefined>>;
  /** The current folder. */
  folder: string;
  stdin: Readable & { readonly isTTY?: boolean };
  stdout: Sink;
  stderr: Sink;
  /** Aborts when the user interrupts the command. A task continues. */
  signal: AbortSignal;
  /** Calls `interrupted` on Ctrl-C, instead of ending the command; undefined lets Ctrl-C end the command again. */
  takeInterrupts: (interrupted: (() => void) | undefined) => void;
};

/** Everything a command runs with, beside its own values. */
export type CommandContext = Omit<ProcessContext, 'stdout' | 'stderr'> & {
  output: Output;
  /** One JSON object per line. */
  json: boolean;
  url: string;
  /** Of the server at `url`; made with the credentials of the environment when it is first read. */
  readonly client: Client;
  conversations: Conversations;
  own: OwnCommand;
  /** A command that works here with the same server, for hints: arguments such as `follow TASK`. */
  commandLine(args: string): string;
  commands: readonly Command[];
};
