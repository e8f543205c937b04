import { BEGINNING } from '@hopline/client';
import { type ArtifactFolder, noticePrinter } from '@hopline/terminal';
import type { CommandContext } from './command.ts';
import { type ExitCode, exitCodeOf } from './exit-code.ts';
import { showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';

export type FollowOptions = { cursor: string | undefined; folder: ArtifactFolder | undefined; answer: readonly string[] };

/** `hopline follow`: prints the stream of a task to its end, from the beginning or after a cursor. */
export async function follow(context: CommandContext, taskId: string, options: FollowOptions): Promise<ExitCode> {
  const { cursor = BEGINNING, folder, answer } = options;
  const { client, signal, output } = context;
  const call = { signal, onNotice: noticePrinter(output) };
  const outcome = new StreamOutcome(taskId, cursor);
  const items = client.subscribe(taskId, { ...call, cursor });
  const code = await showStream(context, { items, outcome, resumed: cursor !== BEGINNING, folder, answerNames: answer });
  // A cursor at the end of a task yields no event; the exit code then comes from the stored state.
  if (code !== 0 || outcome.state !== undefined || signal.aborted) return code;
  return exitCodeOf((await client.get(taskId, { ...call, historyLength: 0 })).status.state);
}
