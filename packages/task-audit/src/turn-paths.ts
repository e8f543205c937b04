import { CriticalPaths, type TurnPath } from './critical-path.ts';
import { producersOf } from './producers.ts';
import { partialOf, type ReadableLog, type ReadLimits, readTaskRecords } from './task-records.ts';
import { startOf } from './trace.ts';

/** The critical paths of a task, and its newest event when it was read. */
export type TaskPaths = { generation: number; turns: TurnPath[] };

/**
 * Reads only the critical paths of a task. Resolves with undefined for an unknown task, and for a task whose beginning retention has
 * removed. Throws TaskTooLong.
 */
export async function readTaskPaths(log: ReadableLog, taskId: string, limits?: ReadLimits): Promise<TaskPaths | undefined> {
  const records = await readTaskRecords(log, taskId, limits);
  if (records === undefined || partialOf(records).length > 0) return undefined;
  const { facts, inputs, aggregate } = records;
  const startMs = startOf(facts, inputs);
  const producers = producersOf(inputs, startMs);
  const turns = new CriticalPaths({ facts, inputs, producers, startMs }).turns();
  return { generation: aggregate.generation, turns };
}
