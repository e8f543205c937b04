import type { Readable } from 'node:stream';
import { A2AError } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import { agent } from './agent.ts';
import { type Invocation, parseArguments, URL_DEFAULT } from './arguments.ts';
import { ask } from './ask.ts';
import { cancel } from './cancel.ts';
import { card } from './card.ts';
import type { CommandContext } from './command.ts';
import { EXIT, type ExitCode, exitCodeOfError } from './exit-code.ts';
import { follow } from './follow.ts';
import { get } from './get.ts';
import { HELP } from './help.ts';
import { list } from './list.ts';
import { Output, type Sink } from './output.ts';
import { readQuestion } from './read-question.ts';
import { trace } from './trace.ts';
import { UsageError } from './usage-error.ts';

/** The process around the command. */
export type Surroundings = {
  environment: Readonly<Record<string, string | undefined>>;
  stdin: Readable & { readonly isTTY?: boolean };
  stdout: Sink;
  stderr: Sink;
  signal: AbortSignal;
};

const HOW_TO_AUTHENTICATE = 'The server asks who you are: set HOPLINE_TOKEN to a bearer token, or HOPLINE_API_KEY to a key.';

/** Runs one command line to its end. Never throws for what a user, a server or a network did. */
export async function run(argv: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  const { environment, stdout, stderr, signal } = surroundings;
  const output = new Output(stdout, stderr, Boolean(environment.NO_COLOR));
  try {
    const invocation = parseArguments(argv, environment.HOPLINE_URL);
    if ('help' in invocation) {
      stdout.write(HELP[invocation.help]);
      return EXIT.ok;
    }
    return await runCommand(invocation, output, surroundings);
  } catch (thrown) {
    if (signal.aborted) return EXIT.interrupted;
    if (!(thrown instanceof UsageError) && !(thrown instanceof A2AError)) throw thrown;
    output.warn(`hopline: ${thrown.message}`);
    if (thrown instanceof A2AError && thrown.code === 'UNAUTHENTICATED') output.warn(HOW_TO_AUTHENTICATE);
    return thrown instanceof UsageError ? EXIT.usage : exitCodeOfError(thrown);
  }
}

type Asked = Exclude<Invocation, { help: unknown }>;

async function runCommand(asked: Asked, output: Output, surroundings: Surroundings): Promise<ExitCode> {
  const { environment, signal } = surroundings;
  const { command, subject = '', url, json } = asked;
  const urlOption = url === URL_DEFAULT ? '' : ` --url ${url}`;
  if (command === 'agent') return agent({ ...asked, file: subject, output, environment, signal, urlOption });
  if (command === 'trace') return trace({ taskId: subject, json, output, environment });
  const client = createClient({ url, headers: credentials(environment) });
  const context: CommandContext = { client, output, json, signal, urlOption };
  switch (command) {
    case 'ask':
      return ask(context, { ...asked, text: await questionOf(asked, surroundings) });
    case 'follow':
      return follow(context, subject, asked.cursor);
    case 'get':
      return get(context, subject);
    case 'cancel':
      return cancel(context, subject);
    case 'list':
      return list(context, { contextId: asked.context, state: asked.state, limit: asked.limit });
    case 'card':
      return card(context);
  }
}

function credentials({ HOPLINE_TOKEN: token, HOPLINE_API_KEY: key }: Surroundings['environment']): Record<string, string> {
  return {
    ...(token && { authorization: `Bearer ${sendable('HOPLINE_TOKEN', token)}` }),
    ...(key && { 'x-api-key': sendable('HOPLINE_API_KEY', key) }),
  };
}

/** Throws UsageError without a word of the value. */
function sendable(name: string, value: string): string {
  if (/^[\x21-\x7e]+$/.test(value)) return value;
  throw new UsageError(`${name} has characters that cannot be sent`);
}

async function questionOf({ subject }: Asked, { stdin, signal }: Surroundings): Promise<string> {
  if (subject !== undefined && subject !== '-' && subject !== '') return subject;
  if (subject === undefined && stdin.isTTY) throw new UsageError('there is nothing to ask; see hopline ask --help');
  if (subject === '') throw new UsageError('there is nothing to ask: the text is empty');
  return readQuestion(stdin, signal);
}
