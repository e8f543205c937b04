import { type Audit, auditOf } from './audit.ts';
import { type ReadableLog, type ReadLimits, readTaskRecords } from './task-records.ts';
import { type TaskTrace, traceOf } from './trace.ts';

/** Report of the time that a task spent in each hop, and of losses. Numbers and names, never text. */
export type TaskReport = TaskTrace & { audit: Audit };

/** Resolves with undefined for an unknown task. Throws TaskTooLong. */
export async function reportTask(log: ReadableLog, taskId: string, limits?: ReadLimits): Promise<TaskReport | undefined> {
  const records = await readTaskRecords(log, taskId, limits);
  return records && { ...traceOf(records, Date.now()), audit: auditOf(records) };
}
