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

/** The process in which a command runs. */
export type ProcessContext = {
  environment: Readonly<Record<string, string | undefined>>;
  stdin: Readable & { readonly isTTY?: boolean };
  stdout: Sink;
  stderr: Sink;
  signal: AbortSignal;
};

const HOW_TO_AUTHENTICATE =
  'The server requires authentication: set HOPLINE_TOKEN to a bearer token or HOPLINE_API_KEY to an API key.';

/** Runs one command line to its end. Never throws for a fault of the user, the server or the network. */
export async function run(argv: readonly string[], processContext: ProcessContext): Promise<ExitCode> {
  const { environment, stdout, stderr, signal } = processContext;
  const output = new Output(stdout, stderr, Boolean(environment.NO_COLOR));
  try {
    const invocation = parseArguments(argv, environment.HOPLINE_URL);
    if ('help' in invocation) {
      stdout.write(HELP[invocation.help]);
      return EXIT.ok;
    }
    return await runCommand(invocation, output, processContext);
  } catch (thrown) {
    if (signal.aborted) return EXIT.interrupted;
    if (!(thrown instanceof UsageError) && !(thrown instanceof A2AError)) throw thrown;
    output.warn(`hopline: ${thrown.message}`);
    if (thrown instanceof A2AError && thrown.code === 'UNAUTHENTICATED') output.warn(HOW_TO_AUTHENTICATE);
    return thrown instanceof UsageError ? EXIT.usage : exitCodeOfError(thrown);
  }
}

type CommandInvocation = Exclude<Invocation, { help: unknown }>;

async function runCommand(invocation: CommandInvocation, output: Output, processContext: ProcessContext): Promise<ExitCode> {
  const { environment, signal } = processContext;
  const { command, subject = '', url, json } = invocation;
  const urlOption = url === URL_DEFAULT ? '' : ` --url ${url}`;
  if (command === 'agent') return agent({ ...invocation, file: subject, output, environment, signal, urlOption });
  if (command === 'trace') return trace({ taskId: subject, json, output, environment });
  const client = createClient({ url, headers: credentials(environment) });
  const context: CommandContext = { client, output, json, signal, urlOption };
  switch (command) {
    case 'ask':
      return ask(context, { ...invocation, text: await questionOf(invocation, processContext) });
    case 'follow':
      return follow(context, subject, invocation.cursor);
    case 'get':
      return get(context, subject);
    case 'cancel':
      return cancel(context, subject);
    case 'list':
      return list(context, { contextId: invocation.context, state: invocation.state, limit: invocation.limit });
    case 'card':
      return card(context);
  }
}

function credentials({ HOPLINE_TOKEN: token, HOPLINE_API_KEY: key }: ProcessContext['environment']): Record<string, string> {
  return {
    ...(token && { authorization: `Bearer ${assertHeaderValue('HOPLINE_TOKEN', token)}` }),
    ...(key && { 'x-api-key': assertHeaderValue('HOPLINE_API_KEY', key) }),
  };
}

/** Throws a UsageError that does not contain the value. */
function assertHeaderValue(name: string, value: string): string {
  if (/^[\x21-\x7e]+$/.test(value)) return value;
  throw new UsageError(`${name} contains characters that are not allowed in a header`);
}

async function questionOf({ subject }: CommandInvocation, { stdin, signal }: ProcessContext): Promise<string> {
  if (subject !== undefined && subject !== '-' && subject !== '') return subject;
  if (subject === undefined && stdin.isTTY) throw new UsageError('nothing to ask; see hopline ask --help');
  if (subject === '') throw new UsageError('nothing to ask: the text is empty');
  return readQuestion(stdin, signal);
}
