import { randomUUID } from 'node:crypto';
import { isTerminal } from '@hopline/a2a';
import type { Owner } from '@hopline/events';
import { type Log, LogConflict, LogFull, LogUnavailable } from '@hopline/log';
import { readTaskFile, TaskFileError, writeTask } from '@hopline/task-file';
import { exportTask, importTasks } from '@hopline/task-transfer';
import { collect } from '../kit/collect.ts';

/**
 * Exports a task and imports the file under a new id. Resolves with undefined if the read copy of the task is still open, or if the log cannot store the
 * records now, and with `refused` for a task that has facts of the next version: this version cannot read its file.
 */
export async function copyTask(
  log: Log,
  taskId: string,
  owner: Owner | undefined,
): Promise<{ taskId: string } | 'refused' | undefined> {
  try {
    const exported = await exportTask(log, taskId, { hopline: '0.1.0', contains: ['facts'], now: Date.now() });
    if (exported === undefined || !isTerminal(exported.outcome.state)) return undefined;
    const { header, outcome, records } = exported;
    const file = (await collect(writeTask(header, records(), { outcome }))).join('');
    const options = { sameIds: false, owner, newId: () => randomUUID(), now: () => Date.now() };
    const [imported] = await collect(importTasks(log, readTaskFile([Buffer.from(file)]), options));
    return imported && { taskId: imported.taskId };
  } catch (error) {
    if (error instanceof TaskFileError && error.fault === 'newer') return 'refused';
    if (error instanceof LogUnavailable || error instanceof LogFull || error instanceof LogConflict) return undefined;
    throw error;
  }
}
