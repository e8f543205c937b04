import type { TaskAggregate } from '@hopline/events';
import { LaterVersion, type Log, readTask, type StoredFacts, type StoredInput } from '@hopline/log';
import { type RecordedTask, readTaskFile, recordedTasks, TaskFileError, type TaskHeader } from '@hopline/task-file';

/** All stored records of a task. */
export type StoredTask = {
  taskId: string;
  /** Aggregate of the newest record. */
  aggregate: TaskAggregate;
  facts: StoredFacts[];
  inputs: StoredInput[];
  /** Parts of the task that a task file does not contain. */
  lacks?: 'inputs' | 'beginning' | 'redacted content';
};

/** A task that cannot be read, and the reason in one sentence. */
export type UnreadableTask = { taskId: string; unreadable: string };

/**
 * Reads a task from the log, facts first, so that inputs stored in the meantime count as not yet decided. Undefined for an unknown task.
 */
export async function readStoredTask(
  log: Pick<Log, 'inputs' | 'facts'>,
  taskId: string,
): Promise<StoredTask | UnreadableTask | undefined> {
  const facts: StoredFacts[] = [];
  const inputs: StoredInput[] = [];
  try {
    const newest = await log.facts.last(taskId);
    if (newest === undefined) return undefined;
    for await (const stored of readTask(log.facts, newest)) facts.push(stored);
    for await (const input of log.inputs.read(taskId)) inputs.push(input);
    return { taskId, aggregate: (facts.at(-1) ?? newest).record.aggregate, facts, inputs };
  } catch (error) {
    if (error instanceof LaterVersion) return { taskId, unreadable: 'the task was written by a later version' };
    throw error;
  }
}

/** Tasks read concurrently. */
const READS_AT_ONCE = 8;

/** Reads tasks from the log, in the order of their ids. Skips those that the log does not know. */
export async function* readTasks(
  log: Pick<Log, 'inputs' | 'facts'>,
  taskIds: readonly string[],
): AsyncGenerator<StoredTask | UnreadableTask, void> {
  const reads: Promise<StoredTask | UnreadableTask | undefined>[] = [];
  for (let next = 0; next < taskIds.length || reads.length > 0; ) {
    while (reads.length < READS_AT_ONCE && next < taskIds.length) {
      const read = readStoredTask(log, taskIds[next++]!);
      // Awaited below, after the earlier reads.
      read.catch(() => {});
      reads.push(read);
    }
    const task = await reads.shift();
    if (task !== undefined) yield task;
  }
}

/** Reads the tasks of a task file, one at a time. If the file has a fault, the last task is an unreadable one. */
export async function* readStoredTasks(file: AsyncIterable<Uint8Array>): AsyncGenerator<StoredTask | UnreadableTask, void> {
  let taskId = '';
  const named = (header: TaskHeader) => {
    taskId = header.taskId;
  };
  try {
    for await (const task of recordedTasks(readTaskFile(file), named)) yield toTask(task);
  } catch (error) {
    if (!(error instanceof TaskFileError)) throw error;
    yield { taskId, unreadable: error.message };
  }
}

function toTask({ header, facts, inputs }: RecordedTask): StoredTask | UnreadableTask {
  const { taskId, contains } = header;
  const newest = facts.at(-1)?.record.aggregate;
  if (newest === undefined || !contains.includes('facts')) return { taskId, unreadable: 'the file has no facts of the task' };
  const lacks = whatLacks(header);
  return { taskId, aggregate: newest, facts, inputs, ...(lacks !== undefined && { lacks }) };
}

function whatLacks({ contains, partial = [], redacted = [] }: TaskHeader): StoredTask['lacks'] {
  if (!contains.includes('inputs')) return 'inputs';
  if (partial.length > 0) return 'beginning';
  return redacted.length > 0 ? 'redacted content' : undefined;
}
