import { stat } from 'node:fs/promises';
import { A2AError } from '@hopline/a2a';
import type { StoredTask, UnreadableTask } from '@hopline/replay';
import { bytesOfFile } from '../command/input-file.ts';
import { openLog } from '../command/open-log.ts';
import { count, flag, parsed, timeSince } from '../command/options.ts';
import { anyNumber } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';

/** The end of `*.hopline.jsonl`, and of most names that a user may give a copy. */
const TASK_FILE_SUFFIX = '.jsonl';

type TaskSources = {
  /** Task ids and paths of task files. */
  subjects: readonly string[];
  /** Takes every task of the log instead of `subjects`. */
  all: boolean;
  /** With `all`: only tasks that changed since then. */
  since: Date | undefined;
  /** With `all`: only this many tasks, chosen at random. */
  sample: number | undefined;
  environment: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
};

const SAMPLE_MAX = 10_000_000;

/** Subject and options of a command that reads stored tasks. */
export const STORED_TASKS = anyNumber('[TASK|FILE…]', 'task ids or task files');
export const STORED_TASK_OPTIONS = {
  all: flag('every task of the log'),
  since: parsed('TIME', 'with --all: tasks that changed since then: 30s, 15m, 2h, 7d, or a date', timeSince),
  sample: parsed('N', 'with --all: N tasks, chosen at random', count({ min: 1, max: SAMPLE_MAX })),
};

/** A task, with the name of its source for messages. */
type NamedTask = { task: StoredTask | UnreadableTask; name: string };

/** The tasks that a command names, one after the other. Throws UsageError, and A2AError for an unknown task or an unavailable log. */
export async function* storedTasks(command: string, sources: TaskSources): AsyncGenerator<NamedTask, void> {
  const { subjects, all, since, sample, environment, signal } = sources;
  if (all === subjects.length > 0)
    throw new UsageError(`${command} requires task ids, task files, or --all; see hopline ${command} --help`);
  if (!all && (since !== undefined || sample !== undefined))
    throw new UsageError(`--since and --sample require --all; see hopline ${command} --help`);
  // Loaded on demand: the other commands need no replay.
  const { readStoredTasks, readTasks, taskIdsOf } = await import('@hopline/replay');
  const files = new Map<string, boolean>();
  for (const subject of subjects) files.set(subject, await isFile(subject));
  const ids = subjects.filter(subject => files.get(subject) !== true);
  for (const [path] of [...files].filter(([, found]) => found)) {
    let count = 0;
    for await (const task of readStoredTasks(bytesOfFile(path))) {
      if (signal.aborted) return;
      count += 1;
      yield { task, name: task.taskId === '' ? path : `${task.taskId} of ${path}` };
    }
    if (count === 0) yield { task: { taskId: '', unreadable: 'the file is empty' }, name: path };
  }
  if (!all && ids.length === 0) return;
  const log = await openLog(environment, `hopline-${command}`);
  try {
    const chosen = all ? sampled(await taskIdsOf(log, { signal, ...(since && { sinceMs: since.getTime() }) }), sample) : ids;
    let found = 0;
    for await (const task of readTasks(log, chosen)) {
      if (signal.aborted) return;
      found += 1;
      yield { task, name: task.taskId };
    }
    if (!all && found < new Set(ids).size) throw new A2AError('TASK_NOT_FOUND');
  } catch (thrown) {
    // The log throws a TypeError for a text that cannot be a task id.
    if (thrown instanceof TypeError) throw new A2AError('TASK_NOT_FOUND');
    throw thrown;
  } finally {
    await log.close();
  }
}

async function isFile(subject: string): Promise<boolean> {
  if (
    await stat(subject).then(
      found => found.isFile(),
      () => false,
    )
  )
    return true;
  if (subject.endsWith(TASK_FILE_SUFFIX) || subject.includes('/')) throw new UsageError(`there is no file ${subject}`);
  return false;
}

/** Fisher-Yates shuffle, stopped when the sample is complete. */
function sampled(ids: string[], count = ids.length): string[] {
  const wanted = Math.min(count, ids.length);
  if (wanted === ids.length) return ids;
  for (let index = 0; index < wanted; index += 1) {
    const other = index + Math.floor(Math.random() * (ids.length - index));
    [ids[index], ids[other]] = [ids[other]!, ids[index]!];
  }
  return ids.slice(0, wanted);
}
