import type { Readable } from 'node:stream';
import type { Client } from '@hopline/client';
import type { LocalCommand } from '@hopline/local-cluster';
import type { Output, Sink } from '@hopline/terminal';
import type { Conversations } from './conversations.ts';
import type { ExitCode } from './exit-code.ts';

/** What completion offers for an option: its possible values, or files. */
export type Values = readonly string[] | 'files';

/** An option of a command. Its name on the command line is its key in `options`: `sameIds` is `--same-ids`. */
export type Option<T = unknown> = {
  /** The name of its value in the help; absent for a flag, which has no value. */
  value?: string;
  short?: string;
  /** The option may be given several times. */
  multiple?: true;
  help: string;
  values?: Values;
  /** Options that cannot be given together with this one, and why. */
  excludes?: { options: readonly string[]; because?: string };
  /**
   * Makes the value from the given texts: at most one, or any number with `multiple`. Throws UsageError, which states what the value must
   * be.
   */
  read(texts: readonly string[]): T;
};

export type Options = Readonly<Record<string, Option>>;

/** The words of a command line that are not options. */
export type Subject<T = unknown> = {
  /** Form of the words in the help, such as `[TASK|FILE…]`. */
  usage: string;
  values?: Values;
  /** Makes the subject from the words. Throws UsageError, which states what the command takes or requires. */
  read(words: readonly string[]): T;
};

/** The values of a command's options. */
export type OptionValues<O extends Options> = { readonly [Name in keyof O]: O[Name] extends Option<infer T> ? T : never };

/** The values that a command line gives to its command. */
export type Given<S, O extends Options> = { subject: S; options: OptionValues<O> };

/** A command, with everything that the parser, the help, the reference and the completions know about it. */
export type Command<S = unknown, O extends Options = Options> = {
  name: string;
  /** An earlier name, which scripts may use; the help does not list it. */
  alias?: string;
  /** Absent: the command takes no words. */
  subject?: Subject<S>;
  summary: string;
  /** Continues the summary in the help of the command. */
  details?: string;
  options: O;
  /** The command does not contact a server, so it has no --url. */
  asksNoServer?: true;
  /** The command prints no answer, so it takes no --json. */
  hasNoJson?: true;
  /** Text at the end of the command's help. */
  notes?: string;
  run(given: Given<S, O>, context: CommandContext): Promise<ExitCode>;
};

/** Checks a command against its own types: `run` gets the values that `subject` and `options` make. */
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
  /** Aborts when the user interrupts the command. Its task continues. */
  signal: AbortSignal;
  /** Makes Ctrl-C call `interrupted` instead of ending the command; undefined lets Ctrl-C end the command again. */
  takeInterrupts: (interrupted: (() => void) | undefined) => void;
};

/** Arguments of a command's `run`: its own values, and its surroundings. */
export type CommandContext = Omit<ProcessContext, 'stdout' | 'stderr'> & {
  output: Output;
  /** Print one JSON object per line. */
  json: boolean;
  url: string;
  /** Client of the server at `url`, created with the credentials of the environment when it is first read. */
  readonly client: Client;
  conversations: Conversations;
  own: LocalCommand;
  /** Makes a command line for a hint that works here with the same server, from arguments such as `follow TASK`. */
  commandLine(args: string): string;
  commands: readonly Command[];
};
