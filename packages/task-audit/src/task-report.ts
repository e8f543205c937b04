import type { Log } from '@hopline/log';
import { type Audit, auditOf } from './audit.ts';
import { type ReadLimits, readTaskRecords } from './task-records.ts';
import { type TaskTrace, traceOf } from './trace.ts';

/** Where a task spent its time, and whether anything was lost: numbers and names, never text. */
export type TaskReport = TaskTrace & { audit: Audit };

/** Resolves with undefined for an unknown task. Throws TaskTooLong. */
export async function reportTask(
  log: Pick<Log, 'inputs' | 'facts'>,
  taskId: string,
  limits?: ReadLimits,
): Promise<TaskReport | undefined> {
  const records = await readTaskRecords(log, taskId, limits);
  return records && { ...traceOf(records), audit: auditOf(records) };
}
