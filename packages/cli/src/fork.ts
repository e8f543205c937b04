import type { Task } from '@hopline/a2a';
import { type Cursor, FORK_KEY, type ForkPoint, formatCursor } from '@hopline/events';
import { noticePrinter } from '@hopline/terminal';
import { type AskOptions, showAnswer } from './ask.ts';
import type { CommandContext } from './command.ts';
import type { ExitCode } from './exit-code.ts';
import { UsageError } from './usage-error.ts';

export type ForkOptions = Pick<AskOptions, 'agent' | 'folder' | 'answer'> & {
  /** The task that is continued, and the new message. */
  subjects: readonly string[];
  at: Cursor | undefined;
  yes: boolean;
};

/** `hopline fork`: continues a conversation from an earlier point, as a new task in a new context. The server leaves the task as it is. */
export async function fork(context: CommandContext, options: ForkOptions): Promise<ExitCode> {
  const { client, output, signal, json } = context;
  const { subjects, at, yes, folder, answer } = options;
  const [origin, text = ''] = subjects;
  if (subjects.length !== 2 || origin === undefined || text.trim() === '')
    throw new UsageError('fork takes one task id and one text (put it in quotes); see hopline fork --help');
  if (at === undefined)
    throw new UsageError('fork needs --at CURSOR: the cursor of the last event that counts; `follow TASK --json` prints them');
  if (!yes) throw new UsageError('fork calls the agents, with everything that they do outside: repeat it with --yes');
  const point: ForkPoint = { taskId: origin, cursor: formatCursor(at) };
  const agent = options.agent ?? agentOf(await client.get(origin, { signal, onNotice: noticePrinter(output) }));
  const message = { parts: [{ text }], referenceTaskIds: [origin], ...(agent !== undefined && { metadata: { agent } }) };
  const onTask = (taskId: string) => json || output.warn(`${origin} from ${point.cursor} on as ${taskId}`);
  return showAnswer(context, { message, metadata: { [FORK_KEY]: point }, agent, folder, answer, onTask });
}

/** The agent that the newest message of the task, or its request, has named. */
function agentOf({ history = [], metadata }: Task): string | undefined {
  const newest = history.findLast(({ role }) => role === 'ROLE_USER');
  const agent = newest?.metadata?.agent ?? metadata?.agent;
  return typeof agent === 'string' ? agent : undefined;
}
