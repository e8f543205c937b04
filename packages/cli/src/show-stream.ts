import { A2AError } from '@hopline/a2a';
import type { Notice, StreamItem } from '@hopline/client';
import type { CommandContext } from './command.ts';
import { EXIT, type ExitCode, exitCodeOfError } from './exit-code.ts';
import type { StreamOutcome } from './stream-outcome.ts';
import { type PrinterOptions, StreamPrinter } from './stream-printer.ts';

export type Shown = PrinterOptions & { items: AsyncIterable<StreamItem>; outcome: StreamOutcome };

/** Shows a stream to its end, and says what the shell is told. One that breaks off says how to go on. */
export async function showStream(context: CommandContext, { items, outcome, ...options }: Shown): Promise<ExitCode> {
  const { output, signal, json } = context;
  const printer = new StreamPrinter(output, options);
  try {
    for await (const item of items) {
      outcome.take(item);
      if (json) output.line(JSON.stringify(item));
      else printer.print(item);
    }
    return outcome.exitCode;
  } catch (thrown) {
    const error = signal.aborted ? undefined : thrown;
    if (error !== undefined && !(error instanceof A2AError)) throw error;
    if (error !== undefined) output.warn(`hopline: ${error.message}`);
    const code = error === undefined ? EXIT.interrupted : exitCodeOfError(error);
    const goesOn = outcome.taskId !== undefined && !outcome.ended && code !== EXIT.failed;
    if (goesOn) output.warn(`the task goes on: ${followCommand(context, outcome)}`);
    return code;
  } finally {
    output.end();
  }
}

/** What the client does by itself meanwhile. */
export function showNotices({ output }: Pick<CommandContext, 'output'>): (notice: Notice) => void {
  return notice => {
    if (notice.kind === 'skipped') output.note('(an event that this version does not know)');
    else output.note(`(${notice.error.message}; trying again in ${(notice.waitMs / 1000).toFixed(1)} s)`);
  };
}

function followCommand({ urlOption }: CommandContext, { taskId, cursor }: StreamOutcome): string {
  return `hopline follow ${taskId}${cursor === undefined ? '' : ` --cursor ${cursor}`}${urlOption}`;
}
