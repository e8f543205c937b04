import type { OutgoingMessage } from '@hopline/client';
import type { CommandContext } from './command.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { showNotices, showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';

export type Question = { text: string; agent: string | undefined; context: string | undefined; task: string | undefined };

/** `hopline ask`: says a message and shows its turn. */
export async function ask(
  context: CommandContext,
  { text, agent, context: contextId, task: taskId }: Question,
): Promise<ExitCode> {
  const { client, output, signal, urlOption } = context;
  const message: OutgoingMessage = {
    parts: [{ text }],
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
    ...(agent !== undefined && { metadata: { agent } }),
  };
  const outcome = new StreamOutcome(taskId);
  const items = client.stream(message, { signal, onNotice: showNotices(context) });
  const code = await showStream(context, { items, outcome, further: taskId !== undefined });
  if (code === EXIT.waiting) output.warn(`answer it: hopline ask --task ${outcome.taskId}${urlOption} TEXT`);
  return code;
}
