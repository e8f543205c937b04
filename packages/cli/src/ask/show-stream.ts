import { A2AError } from '@hopline/a2a';
import type { StreamItem } from '@hopline/client';
import { besideJson, type PrinterOptions, StreamPrinter } from '@hopline/terminal';
import type { CommandContext } from '../command/command.ts';
import { EXIT, type ExitCode, exitCodeOfError } from '../command/exit-code.ts';
import { showError } from '../command/show-error.ts';
import type { StreamOutcome } from './stream-outcome.ts';

const WHERE_AGENTS_FAIL =
  'The terminal that runs the agent shows its error: that of `npm start`, `hopline dev` or `hopline agent`.';

type ShowStreamOptions = PrinterOptions & {
  items: AsyncIterable<StreamItem>;
  outcome: StreamOutcome;
  /** The stream is a recorded one; no task is running. */
  isRecorded?: boolean;
};

/**
 * Prints a stream to its end and returns the exit code. For a stream that breaks off it also prints the command that continues
 * it.
 */
export async function showStream(
  context: CommandContext,
  { items, outcome, isRecorded = false, ...options }: ShowStreamOptions,
): Promise<ExitCode> {
  const { output, signal, json } = context;
  const display = json ? besideJson(output) : output;
  const printer = json && options.folder === undefined ? undefined : new StreamPrinter(display, options);
  try {
    for await (const item of items) {
      outcome.record(item);
      if (json) output.line(JSON.stringify(item));
      printer?.print(item);
    }
    if (outcome.hasHiddenReason && !isRecorded) output.warn(WHERE_AGENTS_FAIL);
    return outcome.exitCode === EXIT.ok && options.folder?.failed ? EXIT.failed : outcome.exitCode;
  } catch (thrown) {
    const error = signal.aborted ? undefined : thrown;
    if (error !== undefined && !(error instanceof A2AError)) throw error;
    if (error !== undefined) showError(error, context);
    const code = error === undefined ? EXIT.interrupted : exitCodeOfError(error);
    const continues = !isRecorded && outcome.taskId !== undefined && !outcome.ended && code !== EXIT.failed;
    if (continues) output.warn(`the task continues: ${followCommand(context, outcome)}`);
    return code;
  } finally {
    output.end();
  }
}

function followCommand({ commandLine }: CommandContext, { taskId, cursor }: StreamOutcome): string {
  return commandLine(`follow ${taskId}${cursor === undefined ? '' : ` --cursor ${cursor}`}`);
}
