import type { OutgoingMessage } from '@hopline/client';
import type { CommandContext } from './command.ts';
import { noticePrinter } from './display.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';

export type AskOptions = { text: string; agent: string | undefined; context: string | undefined; task: string | undefined };

/** `hopline ask`: sends a message and prints the stream of its turn. */
export async function ask(
  context: CommandContext,
  { text, agent, context: contextId, task: taskId }: AskOptions,
): Promise<ExitCode> {
  const { client, output, signal, urlOption } = context;
  const message: OutgoingMessage = {
    parts: [{ text }],
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
    ...(agent !== undefined && { metadata: { agent } }),
  };
  const outcome = new StreamOutcome(taskId);
  const items = client.stream(message, { signal, onNotice: noticePrinter(output) });
  const code = await showStream(context, { items, outcome, continued: taskId !== undefined });
  if (code === EXIT.waiting) output.warn(`reply with: hopline ask --task ${outcome.taskId}${urlOption} TEXT`);
  return code;
}
