import { A2AError } from '@hopline/a2a';
import { type Client, createClient } from '@hopline/client';
import { commandLineFor, credentialsOf, EnvironmentError, localCommand, URL_DEFAULT } from '@hopline/local-cluster';
import { Output } from '@hopline/terminal';
import type { CommandContext, ProcessContext } from './command/command.ts';
import { Conversations } from './command/conversations.ts';
import { EXIT, type ExitCode, exitCodeOfError } from './command/exit-code.ts';
import { commandHelp, overviewHelp } from './command/help.ts';
import { parseArguments } from './command/parse-arguments.ts';
import { refuseInBinary } from './command/refuse-in-binary.ts';
import { showError } from './command/show-error.ts';
import { UsageError } from './command/usage-error.ts';
import { COMMANDS } from './commands.ts';
import { VERSION } from './version.ts';

/** Runs one command line to its end. Never throws for a fault of the user, the server or the network. */
export async function run(argv: readonly string[], processContext: ProcessContext): Promise<ExitCode> {
  const { environment, folder, stdout, stderr, signal } = processContext;
  const output = new Output(stdout, stderr, environment);
  const own = localCommand(folder);
  let url = URL_DEFAULT;
  try {
    // A command of the package `hopline` only.
    if (argv[0] === 'dev') refuseInBinary('hopline dev');
    const invocation = parseArguments(argv, COMMANDS, environment.HOPLINE_URL);
    if ('help' in invocation) {
      const { help } = invocation;
      stdout.write(help === undefined ? overviewHelp(COMMANDS, output.columns) : commandHelp(help, output.columns));
    } else if ('version' in invocation) output.line(VERSION);
    else {
      const { command, given, json } = invocation;
      ({ url } = invocation);
      return await command.run(given, contextOf(processContext, { output, own, url, json }));
    }
    return EXIT.ok;
  } catch (thrown) {
    if (signal.aborted) return EXIT.interrupted;
    if (thrown instanceof A2AError) {
      showError(thrown, { output, url, own, environment });
      return exitCodeOfError(thrown);
    }
    if (!(thrown instanceof UsageError || thrown instanceof EnvironmentError)) throw thrown;
    // Usage errors name `hopline`, but the command may be run under another name.
    output.warn(`hopline: ${thrown.message.replaceAll('see hopline ', `see ${own.prefix} `)}`);
    return EXIT.usage;
  }
}

function contextOf(process: ProcessContext, shown: Pick<CommandContext, 'output' | 'own' | 'url' | 'json'>): CommandContext {
  const { environment, folder, signal, takeInterrupts } = process;
  const { own, url } = shown;
  let client: Client | undefined;
  return {
    ...shown,
    environment,
    folder,
    signal,
    takeInterrupts,
    commands: COMMANDS,
    conversations: new Conversations(environment),
    commandLine: commandLineFor(own, url),
    get stdin() {
      return process.stdin;
    },
    get client() {
      client ??= createClient({ url, headers: credentialsOf(environment), startsTraces: true });
      return client;
    },
  };
}
