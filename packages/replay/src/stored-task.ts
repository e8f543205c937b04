import type { TaskAggregate } from '@hopline/events';
import { LaterVersion, type Log, readTask, type StoredFacts, type StoredInput } from '@hopline/log';
import { readTaskFile, TaskFileError, type TaskHeader } from '@hopline/task-file';

/** Everything that is stored of a task. */
export type StoredTask = {
  taskId: string;
  /** Of the newest record. */
  aggregate: TaskAggregate;
  facts: StoredFacts[];
  inputs: StoredInput[];
};

/** A task that cannot be replayed, and why in one sentence. `isExpired`: retention has removed a part of it. */
export type UnreadableTask = { taskId: string; unreadable: string; isExpired?: true };

/** Reads a task from the log, facts first: an input that is stored later is not decided yet. Undefined for an unknown task. */
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

/** Reads the tasks of a task file, one at a time. A fault of the file ends it with an unreadable task. */
export async function* readStoredTasks(file: AsyncIterable<Uint8Array>): AsyncGenerator<StoredTask | UnreadableTask, void> {
  let header: TaskHeader | undefined;
  let facts: StoredFacts[] = [];
  let inputs: StoredInput[] = [];
  try {
    for await (const entry of readTaskFile(file)) {
      if (entry.kind === 'header') {
        ({ header } = entry);
        facts = [];
        inputs = [];
      } else if (entry.kind === 'input') {
        const { kind: _kind, ...input } = entry;
        inputs.push({ ...input, taskId: header!.taskId, bytes: 0 });
      } else if (entry.kind === 'facts') {
        const { kind: _kind, generation: _generation, ...stored } = entry;
        facts.push(stored);
      } else {
        yield toTask(header!, facts, inputs);
      }
    }
  } catch (error) {
    if (!(error instanceof TaskFileError)) throw error;
    yield { taskId: header?.taskId ?? '', unreadable: error.message };
  }
}

function toTask(
  { taskId, contains, partial, redacted }: TaskHeader,
  facts: StoredFacts[],
  inputs: StoredInput[],
): StoredTask | UnreadableTask {
  const newest = facts.at(-1)?.record.aggregate;
  if (newest === undefined || !contains.includes('inputs') || !contains.includes('facts'))
    return { taskId, unreadable: 'the file has not both inputs and facts of the task' };
  if (redacted !== undefined && redacted.length > 0)
    return { taskId, unreadable: 'the file is redacted: what was taken out cannot be decided again' };
  if (partial !== undefined && partial.length > 0)
    return { taskId, isExpired: true, unreadable: `retention had removed the first ${partial.join(' and ')} before the export` };
  return { taskId, aggregate: newest, facts, inputs };
}
