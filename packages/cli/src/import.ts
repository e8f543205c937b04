import { stat } from 'node:fs/promises';
import { A2AError } from '@hopline/a2a';
import { plural } from '@hopline/task-audit/waterfall';
import { readTaskFile, TaskFileError } from '@hopline/task-file';
import type { Output } from '@hopline/terminal';
import { EXIT, type ExitCode } from './exit-code.ts';
import { bytesOfFile } from './input-file.ts';
import { openLog } from './trace.ts';
import { UsageError } from './usage-error.ts';

export type ImportCommand = {
  file: string;
  sameIds: boolean;
  endOpen: boolean;
  tenant: string | undefined;
  ownerSubject: string | undefined;
  json: boolean;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
};

/** `hopline import`: stores the tasks of a file in a cluster. The file is read twice: nothing is stored of one that is not correct. */
export async function importFile(command: ImportCommand): Promise<ExitCode> {
  const { file, sameIds, endOpen, tenant, ownerSubject, json, output, environment, signal } = command;
  await stat(file).catch((thrown: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} cannot be read (${thrown.code})`);
  });
  if (sameIds && (tenant !== undefined || ownerSubject !== undefined))
    throw new UsageError('--same-ids keeps the owners: leave out --tenant and --subject; see hopline import --help');
  // Loaded on demand: the other commands need no broker.
  const { checkImport, ImportRefused, importTasks } = await import('@hopline/task-transfer');
  const log = await openLog(environment, 'hopline-import', 'admin');
  let [tasks, stored] = [0, 0];
  async function* entries(verb: string) {
    let count = 0;
    for await (const entry of readTaskFile(bytesOfFile(file))) {
      signal.throwIfAborted();
      yield entry;
      count += 1;
      if (count % PROGRESS_RECORDS === 0) output.progress(`${verb} ${count} records`);
    }
  }
  try {
    await checkImport(log, entries('checked'), { sameIds, endsOpen: endOpen });
    const owner = tenant === undefined && ownerSubject === undefined ? undefined : ownerOf(tenant, ownerSubject);
    const options = { sameIds, endsOpen: endOpen, owner, newId: () => crypto.randomUUID(), now: Date.now };
    for await (const imported of importTasks(log, entries('stored'), options)) {
      tasks += 1;
      stored += imported.records;
      output.progress('');
      output.line(json ? JSON.stringify(imported) : imported.taskId);
    }
    output.note(`${plural(tasks, 'task')}, ${plural(stored, 'record')} imported`);
    return EXIT.ok;
  } catch (thrown) {
    if (thrown instanceof TaskFileError || thrown instanceof ImportRefused) throw new UsageError(`${file}: ${thrown.message}`);
    if (signal.aborted || thrown instanceof UsageError || thrown instanceof A2AError) throw thrown;
    const detail = `the log did not store the tasks after the first ${tasks}; do the credentials permit to write facts?`;
    throw new A2AError('UNAVAILABLE', { detail, cause: thrown });
  } finally {
    output.progress('');
    await log.close();
  }
}

const PROGRESS_RECORDS = 500;

function ownerOf(tenant: string | undefined, subject: string | undefined) {
  return { ...(tenant !== undefined && { tenant }), ...(subject !== undefined && { subject }) };
}
