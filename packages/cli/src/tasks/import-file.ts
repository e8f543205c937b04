import { stat } from 'node:fs/promises';
import { A2AError } from '@hopline/a2a';
import { plural } from '@hopline/task-audit/waterfall';
import { readTaskFile, TaskFileError } from '@hopline/task-file';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { bytesOfFile } from '../command/input-file.ts';
import { errorOfLog, openLog } from '../command/open-log.ts';
import { flag, text } from '../command/options.ts';
import { one } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';

const PROGRESS_RECORDS = 500;

export const importFile = command({
  name: 'import',
  subject: one('FILE', 'one task file', 'files'),
  summary: 'stores the tasks of a file in a cluster, with new ids and a link to their origin',
  details:
    'clients then read them as they were recorded; nothing runs again. Writes to NATS: NATS_URL with credentials that may write facts, ' +
    'or the local cluster of `npm start`. The whole file is checked first',
  asksNoServer: true,
  options: {
    sameIds: flag('keeps ids, contexts and owners; repeat it after an interruption, and it continues'),
    endOpen: flag('imports unfinished tasks as canceled; without it they are refused'),
    tenant: text('TENANT', 'tenant of the owner of the imported tasks; default: none, as without authentication'),
    subject: text('SUBJECT', 'subject of that owner'),
  },
  // Reads the file twice, so that an incorrect file is refused before anything is stored.
  async run({ subject: file, options }, { json, output, environment, signal }) {
    const { sameIds, endOpen, tenant, subject } = options;
    await stat(file).catch((thrown: NodeJS.ErrnoException) => {
      throw new UsageError(`${file} cannot be read (${thrown.code})`);
    });
    if (sameIds && (tenant !== undefined || subject !== undefined))
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
      const owner = tenant === undefined && subject === undefined ? undefined : ownerOf(tenant, subject);
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
      const advice = sameIds ? '; repeat the command to continue' : '';
      throw errorOfLog(thrown, `the log did not store the tasks after the first ${tasks}${advice}`);
    } finally {
      output.progress('');
      await log.close();
    }
  },
});

function ownerOf(tenant: string | undefined, subject: string | undefined) {
  return { ...(tenant !== undefined && { tenant }), ...(subject !== undefined && { subject }) };
}
