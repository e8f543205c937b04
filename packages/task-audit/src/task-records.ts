import type { FactRecord, TaskAggregate } from '@hopline/events';
import { type Log, readTask, type StoredInput } from '@hopline/log';

/** Everything stored of a task. */
export type TaskRecords = {
  taskId: string;
  /** The task when the read began. */
  aggregate: TaskAggregate;
  facts: FactRecord[];
  inputs: StoredInput[];
};

/** Bounds of one read of a task. */
export type ReadLimits = {
  /** Records of facts and inputs. */
  recordsMax: number;
  /** Bytes of the inputs, which hold the same text as the facts. */
  inputBytesMax: number;
};

const NO_LIMITS: ReadLimits = { recordsMax: Number.POSITIVE_INFINITY, inputBytesMax: Number.POSITIVE_INFINITY };

/** The task exceeds a limit of the read. */
export class TaskTooLong extends Error {
  override readonly name = 'TaskTooLong';
}

/**
 * Reads a task once. Facts come first: an input that is stored later is pending, not lost. Resolves with undefined for an unknown
 * task; throws TaskTooLong.
 */
export async function readTaskRecords(
  log: Pick<Log, 'inputs' | 'facts'>,
  taskId: string,
  { recordsMax, inputBytesMax }: ReadLimits = NO_LIMITS,
): Promise<TaskRecords | undefined> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) return undefined;
  const facts: FactRecord[] = [];
  const inputs: StoredInput[] = [];
  let bytes = 0;
  const assertWithin = () => {
    if (facts.length + inputs.length > recordsMax) throw new TaskTooLong(`the task has more than ${recordsMax} records`);
    if (bytes > inputBytesMax) throw new TaskTooLong(`the inputs of the task have more than ${inputBytesMax} bytes`);
  };
  for await (const { record } of readTask(log.facts, newest)) {
    facts.push(record);
    assertWithin();
  }
  for await (const input of log.inputs.read(taskId)) {
    inputs.push(input);
    bytes += input.bytes;
    assertWithin();
  }
  return { taskId, aggregate: newest.record.aggregate, facts, inputs };
}
