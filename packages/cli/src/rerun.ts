import { createReadStream } from 'node:fs';
import { A2AError, type Message, stateWord, type Task } from '@hopline/a2a';
import type { StoredTask, TaskDiff } from '@hopline/replay';
import { noticePrinter } from '@hopline/terminal';
import type { CommandContext } from './command.ts';
import { differenceLines } from './diff.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { showError } from './show-error.ts';
import { showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';
import { taskIdsIn } from './task-id-list.ts';
import { UsageError } from './usage-error.ts';

export type RerunOptions = {
  taskIds: readonly string[];
  /** A file with one task id a line. */
  file: string | undefined;
  /** Takes the messages instead of the agent that they name. */
  agent: string | undefined;
  /** Messages before it are not sent, 1-based. */
  fromTurn: number;
  compare: boolean;
  yes: boolean;
};

/** What became of one task. */
type Rerun = { origin: string; taskId: string; state: string; unsent: number; diff?: TaskDiff };

/**
 * `hopline rerun`: sends the messages of a task again, as a new task that refers to it (`referenceTaskIds`). A later message is an answer,
 * so it is sent when the new task waits for one.
 */
export async function rerun(context: CommandContext, options: RerunOptions): Promise<ExitCode> {
  const { output, json, signal } = context;
  const { compare } = options;
  const taskIds = await taskIdsOf(options);
  if (!options.yes)
    throw new UsageError('rerun calls the agents again, with everything that they do outside: repeat it with --yes');
  const isAlone = taskIds.length === 1 && !compare;
  const print = (line: string) => (isAlone ? output.warn(line) : output.line(line));
  const counts = { same: 0, differing: 0, failed: 0 };
  for (const origin of taskIds) {
    if (signal.aborted) return EXIT.interrupted;
    try {
      const done = await rerunOne(context, origin, options, isAlone);
      const isCompleted = done.state === 'completed';
      if (!isCompleted) counts.failed += 1;
      // A task that failed may differ as well.
      if (done.diff?.same === false) counts.differing += 1;
      else if (isCompleted) counts.same += 1;
      if (json) output.line(JSON.stringify(done));
      else for (const line of linesOf(done, context)) print(line);
    } catch (thrown) {
      if (isAlone || signal.aborted || !(thrown instanceof A2AError)) throw thrown;
      counts.failed += 1;
      showError(thrown, context);
    }
  }
  const { same, differing, failed } = counts;
  const compared = compare ? `${same} same, ${differing} differ, ` : '';
  if (!json && !isAlone)
    output.line(`${taskIds.length} ${taskIds.length === 1 ? 'task' : 'tasks'}: ${compared}${failed} not completed`);
  return differing + failed === 0 ? EXIT.ok : EXIT.failed;
}

async function taskIdsOf({ taskIds, file }: RerunOptions): Promise<string[]> {
  if ((file === undefined) === (taskIds.length === 0))
    throw new UsageError('rerun takes task ids, or --file; see hopline rerun --help');
  return [...new Set(file === undefined ? taskIds : await taskIdsIn(createReadStream(file), file))];
}

async function rerunOne(context: CommandContext, origin: string, options: RerunOptions, isShown: boolean): Promise<Rerun> {
  const { client, signal, output } = context;
  const call = { signal, onNotice: noticePrinter(output) };
  const messages = messagesOf(await client.get(origin, call)).slice(options.fromTurn - 1);
  if (messages.length === 0) throw new UsageError(`${origin} has no message ${options.fromTurn}`);
  let outcome = new StreamOutcome();
  let sent = 0;
  do {
    const { taskId } = outcome;
    const message = outgoing(messages[sent]!, origin, options.agent);
    const items = client.stream({ ...message, ...(taskId !== undefined && { taskId }) }, call);
    outcome = new StreamOutcome(taskId);
    if (isShown)
      await showStream(context, { items, outcome, continued: taskId !== undefined, folder: undefined, answerNames: [] });
    else for await (const item of items) outcome.record(item);
    sent += 1;
  } while (sent < messages.length && outcome.state === 'TASK_STATE_INPUT_REQUIRED');
  const { taskId, state } = outcome;
  if (taskId === undefined || state === undefined)
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the server made no task of the message', retryable: false });
  const done = { origin, taskId, state: stateWord(state), unsent: messages.length - sent };
  return options.compare ? { ...done, diff: await compareTasks(context, origin, taskId) } : done;
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
  const left = unsent === 0 ? '' : `; it asked for no answer to ${unsent} later ${unsent === 1 ? 'message' : 'messages'}`;
  if (diff === undefined)
    return [`${origin} again as ${taskId}: ${state}${left}`, `compare: ${own.prefix} diff ${origin} ${taskId}`];
  const times = `${diff.a.totalMs} ms, now ${diff.b.totalMs} ms; ${diff.a.tokens} tokens, now ${diff.b.tokens}`;
  const verdict = diff.same ? 'same' : 'differs';
  const parts = diff.differences.flatMap(difference => differenceLines(difference)).map(line => `  ${line}`);
  return [`${origin} again as ${taskId}: ${state}, ${verdict}; ${times}${left}`, ...parts];
}
