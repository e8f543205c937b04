import { BEGINNING } from '@hopline/client';
import type { CommandContext } from './command.ts';
import { type ExitCode, exitCodeOf } from './exit-code.ts';
import { showNotices, showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';

/** `hopline follow`: shows a task from its beginning, or from a place in it, to its end. */
export async function follow(context: CommandContext, taskId: string, cursor = BEGINNING): Promise<ExitCode> {
  const { client, signal } = context;
  const call = { signal, onNotice: showNotices(context) };
  const outcome = new StreamOutcome(taskId, cursor);
  const items = client.subscribe(taskId, { ...call, cursor });
  const code = await showStream(context, { items, outcome, resumed: cursor !== BEGINNING });
  // A cursor at the very end is followed by nothing, and the task has ended all the same.
  if (code !== 0 || outcome.state !== undefined || signal.aborted) return code;
  return exitCodeOf((await client.get(taskId, { ...call, historyLength: 0 })).status.state);
}
