import { noticePrinter } from '@hopline/terminal';
import type { CommandContext } from './command.ts';
import { EXIT, type ExitCode } from './exit-code.ts';

/** `hopline cancel`. The server waits a bounded time for the agent to stop, so the returned task may still be working. */
export async function cancel(context: CommandContext, taskId: string): Promise<ExitCode> {
  const { client, output, json, signal } = context;
  const task = await client.cancel(taskId, { signal, onNotice: noticePrinter(output) });
  const canceled = task.status.state === 'TASK_STATE_CANCELED';
  if (json) output.line(JSON.stringify(task));
  else if (canceled) output.note(`task ${taskId} canceled`);
  else output.warn(`task ${taskId} is not canceled yet: its agent has not stopped`);
  return canceled ? EXIT.ok : EXIT.failed;
}
