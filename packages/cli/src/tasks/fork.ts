import type { Task } from '@hopline/a2a';
import { FORK_KEY, type ForkPoint, formatCursor } from '@hopline/events';
import { noticePrinter } from '@hopline/terminal';
import { ANSWER, OUT } from '../ask/answer-options.ts';
import { showAnswer } from '../ask/ask.ts';
import { outFolder } from '../ask/out-folder.ts';
import { command } from '../command/command.ts';
import { EXIT_CODES_NOTE } from '../command/exit-code.ts';
import { cursor, flag, parsed, text } from '../command/options.ts';
import { pair } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';

export const fork = command({
  name: 'fork',
  subject: pair('TASK TEXT', 'a task id and a text (put it in quotes)'),
  summary: 'continues a conversation from an earlier point, with another message',
  details:
    'starts a new task in a new context; its agents receive the messages of the task and of earlier ones, up to the cursor. The task itself ' +
    'does not change. The agents really run, with all their side effects',
  options: {
    at: parsed(
      'CURSOR',
      'required: the cursor of the last event to keep, such as 17.42; `follow TASK --json` prints one with every event',
      cursor,
    ),
    yes: flag('required, because the agents are called'),
    agent: text('NAME', 'this agent instead of the one that the task names'),
    out: OUT,
    answer: ANSWER,
  },
  notes: EXIT_CODES_NOTE,
  async run({ subject: [origin, given], options }, context) {
    const { client, output, signal, json } = context;
    const { at, yes, out, answer } = options;
    if (given.trim() === '') throw new UsageError('fork requires a text that is not only white space; see hopline fork --help');
    if (at === undefined)
      throw new UsageError('fork needs --at CURSOR: the cursor of the last event to keep; `follow TASK --json` prints them');
    if (!yes) throw new UsageError('fork runs the agents, with all their side effects: repeat it with --yes');
    const folder = outFolder(out);
    const point: ForkPoint = { taskId: origin, cursor: formatCursor(at) };
    const agent = options.agent ?? agentOf(await client.get(origin, { signal, onNotice: noticePrinter(output) }));
    const parts = [{ text: given }];
    const message = { parts, referenceTaskIds: [origin], ...(agent !== undefined && { metadata: { agent } }) };
    const onTask = (taskId: string) => json || output.warn(`${origin} from ${point.cursor} on as ${taskId}`);
    return showAnswer(context, { message, metadata: { [FORK_KEY]: point }, agent, folder, answer, onTask });
  },
});

/** The agent named in the newest message of the task, or in its request. */
function agentOf({ history = [], metadata }: Task): string | undefined {
  const newest = history.findLast(({ role }) => role === 'ROLE_USER');
  const agent = newest?.metadata?.agent ?? metadata?.agent;
  return typeof agent === 'string' ? agent : undefined;
}
