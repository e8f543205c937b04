import type { CommandContext } from './command.ts';
import { noticePrinter } from './display.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { StreamPrinter } from './stream-printer.ts';

/** `hopline get`: prints the answer of a task so far, or the whole task as JSON. */
export async function get(context: CommandContext, taskId: string): Promise<ExitCode> {
  const { client, output, json, signal } = context;
  const task = await client.get(taskId, { signal, onNotice: noticePrinter(output) });
  if (json) output.line(JSON.stringify(task));
  else new StreamPrinter(output).printTask(task);
  output.end();
  return EXIT.ok;
}
