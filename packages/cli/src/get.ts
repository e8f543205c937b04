import { type ArtifactFolder, besideJson, noticePrinter, StreamPrinter } from '@hopline/terminal';
import type { CommandContext } from './command.ts';
import { EXIT, type ExitCode } from './exit-code.ts';

export type GetOptions = { folder: ArtifactFolder | undefined; answer: readonly string[] };

/** `hopline get`: prints the answer of a task so far, or the whole task as JSON. */
export async function get(context: CommandContext, taskId: string, { folder, answer }: GetOptions): Promise<ExitCode> {
  const { client, output, json, signal } = context;
  const task = await client.get(taskId, { signal, onNotice: noticePrinter(output) });
  if (json) output.line(JSON.stringify(task));
  if (!json || folder !== undefined) {
    const printer = new StreamPrinter(json ? besideJson(output) : output, { folder, answerNames: answer });
    printer.printTask(task);
    // A task that still works has parts that wait for others.
    printer.end();
  }
  output.end();
  return folder?.failed ? EXIT.failed : EXIT.ok;
}
