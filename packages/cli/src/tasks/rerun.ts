import { createReadStream } from 'node:fs';
import { A2AError, type Message, stateWord, type Task } from '@hopline/a2a';
import type { StoredTask, TaskDiff } from '@hopline/replay';
import { plural } from '@hopline/task-audit/waterfall';
import { noticePrinter } from '@hopline/terminal';
import { showStream } from '../ask/show-stream.ts';
import { StreamOutcome } from '../ask/stream-outcome.ts';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { count, flag, parsed, text } from '../command/options.ts';
import { showError } from '../command/show-error.ts';
import { anyNumber } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { printDifference } from './diff.ts';
import { taskIdsIn } from './task-id-list.ts';

/** Most messages of a task; the server has the same bound. */
const TURNS_MAX = 256;

/** The outcome of running one task again. */
type Rerun = { origin: string; taskId: string; state: string; unsent: number; diff?: TaskDiff };

export const rerun = command({
  name: 'rerun',
  subject: anyNumber('[TASK…]', 'task ids'),
  summary: 'sends the messages of tasks again, as new tasks that refer to them',
  details:
    'the agents really run, with all their side effects; webhooks of the old task receive nothing. A later message of a task is sent ' +
    'when the new one waits for an answer. Exit code 1 when a new task does not complete or, with --compare, differs',
  options: {
    yes: flag('required, because the agents are called'),
    agent: text('NAME', 'this agent instead of the one that the messages name'),
    fromTurn: parsed('N', 'starts with the N-th message of the task', count({ min: 1, max: TURNS_MAX })),
    file: text('FILE', 'reads task ids from this file, one per line', 'files'),
    compare: flag('prints whether states, calls and texts are the same, and times and tokens of both'),
  },
  async run({ subject, options }, context) {
    const { output, json, signal } = context;
    const { compare } = options;
    const taskIds = await taskIdsOf(subject, options.file);
    if (!options.yes) throw new UsageError('rerun runs the agents again, with all their side effects: repeat it with --yes');
    const isSingle = taskIds.length === 1 && !compare;
    const print = (line: string) => (isSingle ? output.warn(line) : output.line(line));
    const counts = { same: 0, differing: 0, failed: 0 };
    for (const origin of taskIds) {
      if (signal.aborted) return EXIT.interrupted;
      try {
        const done = await rerunOne(context, origin, options, isSingle);
        const isCompleted = done.state === 'completed';
        if (!isCompleted) counts.failed += 1;
        // A failed task may differ too, so it can count twice.
        if (done.diff?.same === false) counts.differing += 1;
        else if (isCompleted) counts.same += 1;
        if (json) output.line(JSON.stringify(done));
        else for (const line of linesOf(done, context)) print(line);
        if (!json) for (const difference of done.diff?.differences ?? []) printDifference(output, difference, '  ');
      } catch (thrown) {
        if (isSingle || signal.aborted || !(thrown instanceof A2AError)) throw thrown;
        counts.failed += 1;
        showError(thrown, context);
      }
    }
    const { same, differing, failed } = counts;
    const compared = compare ? `${same} same, ${differing} differ, ` : '';
    if (!json && !isSingle) output.line(`${plural(taskIds.length, 'task')}: ${compared}${failed} not completed`);
    return differing + failed === 0 ? EXIT.ok : EXIT.failed;
  },
});

/** The given ids, or those in `file`, one a line. */
async function taskIdsOf(given: readonly string[], file: string | undefined): Promise<string[]> {
  if ((file === undefined) === (given.length === 0))
    throw new UsageError('rerun takes task ids, or --file; see hopline rerun --help');
  return [...new Set(file === undefined ? given : await taskIdsIn(createReadStream(file), file))];
}

type RerunOptions = { agent: string | undefined; fromTurn: number | undefined; compare: boolean };

/**
 * Sends the messages of a task as a new task that refers to it (`referenceTaskIds`). A later message is an answer, so it is sent when the
 * new task waits for one.
 */
async function rerunOne(
  context: CommandContext,
  origin: string,
  { agent, fromTurn = 1, compare }: RerunOptions,
  isShown: boolean,
): Promise<Rerun> {
  const { client, signal, output } = context;
  const call = { signal, onNotice: noticePrinter(output) };
  const messages = messagesOf(await client.get(origin, call)).slice(fromTurn - 1);
  if (messages.length === 0) throw new UsageError(`${origin} has no message ${fromTurn}`);
  let outcome = new StreamOutcome();
  let sent = 0;
  do {
    const { taskId } = outcome;
    const message = outgoing(messages[sent]!, origin, agent);
    const items = client.stream({ ...message, ...(taskId !== undefined && { taskId }) }, call);
    outcome = new StreamOutcome(taskId);
    if (isShown)
      await showStream(context, { items, outcome, continued: taskId !== undefined, folder: undefined, answerNames: [] });
    else for await (const item of items) outcome.record(item);
    sent += 1;
  } while (sent < messages.length && outcome.state === 'TASK_STATE_INPUT_REQUIRED');
  const { taskId, state } = outcome;
  if (taskId === undefined || state === undefined)
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the server created no task for the message', retryable: false });
  const done = { origin, taskId, state: stateWord(state), unsent: messages.length - sent };
  return compare ? { ...done, diff: await compareTasks(context, origin, taskId) } : done;
}

function messagesOf({ history = [] }: Task): Message[] {
  return history.filter(({ role }) => role === 'ROLE_USER');
}

function outgoing({ parts, metadata, extensions }: Message, origin: string, agent: string | undefined) {
  const chosen = agent === undefined ? metadata : { ...metadata, agent };
  return { parts, referenceTaskIds: [origin], ...(chosen && { metadata: chosen }), ...(extensions && { extensions }) };
}

async function compareTasks({ client, signal }: CommandContext, ...taskIds: [string, string]): Promise<TaskDiff> {
  // Loaded on demand: the other commands need no replay.
  const { diffTasks, readStoredTasks } = await import('@hopline/replay');
  const [first, second] = await Promise.all(
    taskIds.map(async (taskId): Promise<StoredTask> => {
      for await (const task of readStoredTasks(client.export(taskId, { signal, records: 'facts' }))) {
        if (!('unreadable' in task)) return task;
        throw new A2AError('INVALID_AGENT_RESPONSE', { detail: task.unreadable, retryable: false });
      }
      throw new A2AError('TASK_NOT_FOUND', { taskId });
    }),
  );
  return diffTasks(first!, second!);
}

function linesOf({ origin, taskId, state, unsent, diff }: Rerun, { own }: CommandContext): string[] {
  const left = unsent === 0 ? '' : `; it asked for no answer to ${plural(unsent, 'later message')}`;
  if (diff === undefined)
    return [`${origin} again as ${taskId}: ${state}${left}`, `compare: ${own.prefix} diff ${origin} ${taskId}`];
  const times = `${diff.a.totalMs} ms, now ${diff.b.totalMs} ms; ${diff.a.tokens} tokens, now ${diff.b.tokens}`;
  const verdict = diff.same ? 'same' : 'differs';
  return [`${origin} again as ${taskId}: ${state}, ${verdict}; ${times}${left}`];
}
