import { A2AError } from '@hopline/a2a';
import type { ExportTask } from '@hopline/a2a-http';
import type { Log } from '@hopline/log';
import {
  decodeProgress,
  type RecordEntry,
  type RecordKind,
  type TaskProgress,
  withheldFromOwner,
  writeTask,
} from '@hopline/task-file';
import { exportTask } from '@hopline/task-transfer';

const KINDS: readonly RecordKind[] = ['inputs', 'facts'];

/** Exports a task for its owner, without records that only services read. An operator with access to NATS exports everything (`--nats`). */
export function taskExport(log: Log, hopline: string): ExportTask {
  return async (taskId, query) => {
    const contains = kindsOf(query.records);
    const after = progressOf(query.after);
    const found = await exportTask(log, taskId, { hopline, contains, now: Date.now() });
    if (found === undefined) return undefined;
    const { header, outcome, records } = found;
    return writeTask({ ...header, redacted: ['services'] }, withheld(records(after)), { outcome, after });
  };
}

async function* withheld(entries: AsyncIterable<RecordEntry>): AsyncGenerator<RecordEntry> {
  for await (const entry of entries) yield withheldFromOwner(entry);
}

function kindsOf(text: string | undefined): RecordKind[] {
  if (text === undefined) return [...KINDS];
  const named = text.split(',');
  const kinds = KINDS.filter(kind => named.includes(kind));
  if (kinds.length === named.length) return kinds;
  throw new A2AError('INVALID_PARAMS', { detail: 'records must be inputs, facts or inputs,facts' });
}

function progressOf(text: string | undefined): TaskProgress | undefined {
  if (text === undefined) return undefined;
  const progress = decodeProgress(text);
  if (progress !== undefined) return progress;
  throw new A2AError('INVALID_PARAMS', { detail: 'after must be the place at which an export was cut' });
}
