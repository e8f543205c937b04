import type { Readable } from 'node:stream';
import { A2AError } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import { commandLineFor, credentialsOf, EnvironmentError, ownCommand, URL_DEFAULT } from '@hopline/local-cluster';
import { Output, type Sink } from '@hopline/terminal';
import packageJson from '../package.json' with { type: 'json' };
import { agent } from './agent.ts';
import { agents } from './agents.ts';
import { type Invocation, parseArguments } from './arguments.ts';
import { ask } from './ask.ts';
import { backup, restore } from './backup.ts';
import { cancel } from './cancel.ts';
import { card } from './card.ts';
import { chat } from './chat.ts';
import type { CommandContext } from './command.ts';
import { completionScript, type Shell } from './completion.ts';
import { Conversations } from './conversations.ts';
import { diff } from './diff.ts';
import { EXIT, type ExitCode, exitCodeOfError } from './exit-code.ts';
import { exportTasks } from './export.ts';
import { follow } from './follow.ts';
import { fork } from './fork.ts';
import { get } from './get.ts';
import { helpText } from './help.ts';
import { importFile } from './import.ts';
import { list } from './list.ts';
import { logs } from './logs.ts';
import { newAgent } from './new-agent.ts';
import { outFolder } from './out-folder.ts';
import { readQuestion } from './read-question.ts';
import { replay } from './replay.ts';
import { rerun } from './rerun.ts';
import { serve } from './serve.ts';
import { showError } from './show-error.ts';
import { status } from './status.ts';
import { top } from './top.ts';
import { trace, traceFromNats } from './trace.ts';
import { UsageError } from './usage-error.ts';
import { verify } from './verify.ts';
import { whatIf } from './what-if.ts';
import { eventOf, why, whyFromNats } from './why.ts';

/** The process in which a command runs. */
export type ProcessContext = {
  environment: Readonly<Record<string, string | undefined>>;
  /** The current folder. */
  folder: string;
  stdin: Readable & { readonly isTTY?: boolean };
  stdout: Sink;
  stderr: Sink;
  signal: AbortSignal;
  /** Calls `interrupted` on Ctrl-C, instead of ending the command; undefined gives that back. */
  takeInterrupts: (interrupted: (() => void) | undefined) => void;
};

/** Runs one command line to its end. Never throws for a fault of the user, the server or the network. */
export async function run(argv: readonly string[], processContext: ProcessContext): Promise<ExitCode> {
  const { environment, folder, stdout, stderr, signal } = processContext;
  const output = new Output(stdout, stderr, environment);
  const own = ownCommand(environment, folder);
  let url = URL_DEFAULT;
  try {
    const invocation = parseArguments(argv, environment.HOPLINE_URL);
    if ('help' in invocation) stdout.write(helpText(invocation.help, output.columns));
    else if ('version' in invocation) output.line(packageJson.version);
    else {
      ({ url } = invocation);
      return await runCommand(invocation, { output, own, commandLine: commandLineFor(own, url) }, processContext);
    }
    return EXIT.ok;
  } catch (thrown) {
    if (signal.aborted) return EXIT.interrupted;
    if (thrown instanceof A2AError) {
      showError(thrown, { output, url, own });
      return exitCodeOfError(thrown);
    }
    if (!(thrown instanceof UsageError || thrown instanceof EnvironmentError)) throw thrown;
    // Usage errors name `hopline`; here it may be another command.
    output.warn(`hopline: ${thrown.message.replaceAll('see hopline ', `see ${own.prefix} `)}`);
    return EXIT.usage;
  }
}

type CommandInvocation = Exclude<Invocation, { help: unknown } | { version: unknown }>;

async function runCommand(
  invocation: CommandInvocation,
  shown: Pick<CommandContext, 'output' | 'own' | 'commandLine'>,
  processContext: ProcessContext,
): Promise<ExitCode> {
  const { environment, signal, takeInterrupts } = processContext;
  const { command, subject = '', url, json } = invocation;
  const { output, own } = shown;
  if (command === 'completion') {
    // Not a line of this process: a shell reads it.
    output.answer(completionScript(subject as Shell));
    return EXIT.ok;
  }
  if (command === 'agent') return agent({ ...invocation, file: subject, output, environment, signal, own });
  if (command === 'backup') return backup({ folder: subject, json, output, environment });
  if (command === 'restore') return restore({ folder: subject, json, output, environment });
  if (command === 'new') return newAgent({ ...invocation, subject, folder: processContext.folder, output, own });
  if (command === 'status') return status({ json, output, environment });
  if (command === 'logs') return logs({ ...invocation, service: invocation.subject, output, environment, signal });
  if (command === 'verify') return verify({ ...invocation, output, environment, signal });
  if (command === 'diff') return diff({ ...invocation, output, environment, signal });
  if (command === 'what-if') return whatIf({ ...invocation, output, environment, signal });
  if (command === 'trace' && invocation.nats)
    return traceFromNats({ ...invocation, taskId: subject, output, environment, signal });
  if (command === 'why' && invocation.nats) return whyFromNats({ ...eventOf(subject), json, output, environment });
  if (command === 'serve')
    return serve({ ...invocation, files: invocation.subjects, version: packageJson.version, output, environment, signal });
  if (command === 'import') return importFile({ ...invocation, file: subject, output, environment, signal });
  const { output: file, subjects } = invocation;
  const exporting = { ...invocation, file, taskIds: [...new Set(subjects)], version: packageJson.version };
  if (command === 'export' && invocation.nats) return exportTasks({ ...exporting, output, environment, signal });
  const client = createClient({ url, headers: credentialsOf(environment), startsTraces: true });
  const context: CommandContext = { ...shown, client, json, url, signal, conversations: new Conversations(environment) };
  // Before anything is sent: a folder that cannot be made is a usage error.
  const folder = invocation.out === undefined ? undefined : outFolder(invocation.out);
  const answering = { ...invocation, folder };
  switch (command) {
    case 'ask':
      return ask(context, { ...answering, text: await questionOf(invocation, processContext) });
    case 'chat':
      return chat(context, { ...answering, stdin: processContext.stdin, takeInterrupts });
    case 'follow':
      return follow(context, subject, answering);
    case 'get':
      return get(context, subject, answering);
    case 'cancel':
      return cancel(context, subject);
    case 'tasks':
    case 'list':
      return list(context, invocation);
    case 'trace':
      return trace(context, subject, invocation);
    case 'export':
      return exportTasks({ ...exporting, client, output, environment, signal });
    case 'replay':
      return replay(context, subject, answering);
    case 'rerun':
      return rerun(context, { ...invocation, taskIds: invocation.subjects });
    case 'fork':
      return fork(context, answering);
    case 'top':
      return top(context, { stdin: () => processContext.stdin, environment });
    case 'why':
      return why(context, eventOf(subject));
    case 'agents':
      return agents(context);
    case 'card':
      return card(context);
  }
}

async function questionOf({ subject }: CommandInvocation, { stdin, signal }: ProcessContext): Promise<string> {
  if (subject === undefined && stdin.isTTY) throw new UsageError('nothing to ask; see hopline ask --help');
  if (subject === undefined || subject === '-') return readQuestion(stdin, signal);
  if (subject.trim() === '')
    throw new UsageError(`nothing to ask: the text ${subject === '' ? 'is empty' : 'has only white space'}`);
  return subject;
}
