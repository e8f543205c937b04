import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { A2AError, isTerminal, stateWord, type TaskState } from '@hopline/a2a';
import type { Client } from '@hopline/client';
import { plural } from '@hopline/task-audit/waterfall';
import {
  encodeProgress,
  findResumePoint,
  type RecordKind,
  Redactor,
  type ResumePoint,
  readTaskFile,
  type TaskEntry,
  TaskFileError,
  type TaskHeader,
  type TaskProgress,
  TaskWriter,
} from '@hopline/task-file';
import { noticePrinter } from '@hopline/terminal';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { codeOfFault } from '../command/input-file.ts';
import { NATS, openLog, undefinedForInvalidId } from '../command/open-log.ts';
import { flag, text } from '../command/options.ts';
import { several } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { VERSION } from '../version.ts';

/** Maximum number of connections that may break in a row without a new record. */
const BREAKS_MAX = 5;
/** Number of characters after which collected text is written. */
const WRITE_CHARS = 256 * 1024;
const PROGRESS_INTERVAL_MS = 200;

export const exportTasks = command({
  name: 'export',
  subject: several('TASK…', 'one or more task ids'),
  summary: 'writes tasks as a file: every input and every fact, with its time',
  details:
    'to standard output, or to --output FILE; an unfinished file is continued where it ends. A server leaves out data that only services ' +
    'read; --nats reads everything',
  options: {
    output: text('FILE', 'writes this file; continues an unfinished file of the same tasks', 'files'),
    inputs: flag('only what clients and agents wrote'),
    facts: flag('only what clients receive; without --inputs and --facts the file contains both'),
    redact: flag('replaces texts with filler of the same length and ids with pseudonyms; keeps names, states and times'),
    nats: NATS,
  },
  notes: 'The format: packages/task-file/README.md. Files may be joined: cat a.hopline.jsonl b.hopline.jsonl.',
  async run({ subject, options }, context) {
    const { output, environment, signal } = context;
    const { output: file, nats, ...chosen } = options;
    const client = nats ? undefined : context.client;
    const order = { ...chosen, taskIds: [...new Set(subject)], file, client, output, environment, signal };
    const target = file === undefined ? undefined : await openTarget(file, order);
    const source = await openSource(order);
    const exporter = new Exporter(order, source, target);
    try {
      const { finished = [], open: unfinished } = target?.point ?? {};
      // A file that ends within a task is continued with that task, whatever the order on the command line.
      const first = unfinished?.header.taskId;
      if (first !== undefined) await exporter.export(first, unfinished);
      for (const taskId of order.taskIds) {
        if (taskId !== first && !finished.some(header => header.taskId === taskId)) await exporter.export(taskId, undefined);
      }
      await exporter.flush();
    } catch (thrown) {
      await exporter.flush();
      output.progress('');
      if (file !== undefined && exporter.records > 0) output.warn(`${file} is unfinished: the same command continues it`);
      else if (file !== undefined && target?.isNew) await rm(file, { force: true });
      throw thrown;
    } finally {
      output.progress('');
      await target?.handle.close();
      await source.close();
    }
    if (file !== undefined)
      output.note(`${file}: ${plural(order.taskIds.length, 'task')}, ${plural(exporter.records, 'record')} written`);
    return EXIT.ok;
  },
});

/** The tasks to export, their parts, and where they go. */
type Export = Pick<CommandContext, 'output' | 'environment' | 'signal'> & {
  taskIds: readonly string[];
  /** Undefined: standard output. */
  file: string | undefined;
  /** Undefined: the log itself is read. */
  client: Client | undefined;
  /** Whether inputs are exported, in addition to facts. */
  inputs: boolean;
  facts: boolean;
  redact: boolean;
};

type CutTask = { header: TaskHeader; progress: TaskProgress };
type Source = { entries(taskId: string, after: CutTask | undefined): AsyncIterable<TaskEntry>; close(): Promise<void> };
/** `isNew`: this export created the file. */
type Target = { handle: FileHandle; point: ResumePoint; isNew: boolean };

function kindsOf({ inputs, facts }: Export): RecordKind[] {
  if (inputs === facts) return ['inputs', 'facts'];
  return inputs ? ['inputs'] : ['facts'];
}

/** Writes the tasks one after the other, each block as soon as it is read. */
class Exporter {
  records = 0;
  readonly #order: Export;
  readonly #source: Source;
  readonly #target: Target | undefined;
  /** The key is secret and never written; otherwise short ids could be found by brute force. */
  readonly #redactor: Redactor | undefined;
  #pending = '';
  #shownAt = 0;
  #chars = 0;

  constructor(order: Export, source: Source, target: Target | undefined) {
    this.#order = order;
    this.#source = source;
    this.#target = target;
    this.#redactor = order.redact ? new Redactor(randomBytes(32)) : undefined;
  }

  async export(taskId: string, from: CutTask | undefined): Promise<void> {
    // The data as the source has sent it, with the source's own sums. After a break the export continues from there.
    const received = new TaskWriter(from?.progress);
    const written = this.#redactor === undefined ? received : new TaskWriter();
    let header = from?.header;
    for (let breaks = 0; ; ) {
      const place = header && { header, progress: received.progress };
      try {
        for await (const entry of this.#source.entries(taskId, place)) {
          if (entry.kind === 'header') header = entry.header;
          await this.#write(this.#lineOf(entry, received, written));
          breaks = 0;
          if (entry.kind === 'end') {
            if (!isTerminal(entry.state)) this.#warnOpen(taskId, entry.state);
            return;
          }
        }
        throw new A2AError('UNAVAILABLE', { detail: 'the export ended early' });
      } catch (thrown) {
        breaks += 1;
        if (!isBreak(thrown) || breaks > BREAKS_MAX || header === undefined || this.#order.signal.aborted) throw thrown;
      }
    }
  }

  /** The same command would leave the file as it is, because it is whole. */
  #warnOpen(taskId: string, state: TaskState): void {
    this.#order.output.warn(
      `task ${taskId} has not ended (${stateWord(state)}): the export has its events so far; export it later into another file`,
    );
  }

  #lineOf(entry: TaskEntry, received: TaskWriter, written: TaskWriter): string {
    const redactor = this.#redactor;
    switch (entry.kind) {
      case 'header': {
        const line = received.header(entry.header);
        return redactor === undefined ? line : written.header(redactor.header(entry.header));
      }
      case 'end':
        return written.end(entry);
      default: {
        this.records += 1;
        const line = received.record(entry);
        return redactor === undefined ? line : written.record(redactor.entry(entry));
      }
    }
  }

  async #write(line: string): Promise<void> {
    this.#pending += line;
    this.#chars += line.length;
    if (this.#pending.length >= WRITE_CHARS) await this.flush();
    const now = performance.now();
    if (this.#target === undefined || now - this.#shownAt < PROGRESS_INTERVAL_MS) return;
    this.#shownAt = now;
    this.#order.output.progress(`${this.records} records, ${(this.#chars / 2 ** 20).toFixed(1)} MiB`);
  }

  async flush(): Promise<void> {
    const text = this.#pending;
    this.#pending = '';
    if (this.#target === undefined) await this.#order.output.raw(text);
    else
      await this.#target.handle.appendFile(text).catch((thrown: unknown) => {
        throw new UsageError(`--output ${this.#order.file}: the file cannot be written (${codeOfFault(thrown)})`);
      });
  }
}

/** Whether the connection broke, or the server closed it before the end of the file. */
function isBreak(thrown: unknown): boolean {
  if (thrown instanceof TaskFileError) return thrown.fault === 'truncated';
  return thrown instanceof A2AError && thrown.code === 'UNAVAILABLE';
}

/** Opens the file, truncated after its last whole line. Throws UsageError unless it is an unfinished file of these tasks. */
async function openTarget(file: string, order: Export): Promise<Target> {
  const isNew = !existsSync(file);
  const handle = await open(file, 'a+').catch((thrown: unknown) => {
    throw new UsageError(`--output ${file}: the file cannot be written (${codeOfFault(thrown)})`);
  });
  try {
    const point = await findResumePoint(createReadStream(file)).catch((thrown: unknown) => {
      if (!(thrown instanceof TaskFileError)) throw thrown;
      throw new UsageError(`--output ${file}: the file exists and cannot be continued (${thrown.message}); remove it`);
    });
    requireContinuation(file, point, order);
    await handle.truncate(point.bytes);
    return { handle, point, isNew };
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}

function requireContinuation(file: string, { open: unfinished, finished }: ResumePoint, order: Export): void {
  const headers = [...finished, ...(unfinished ? [unfinished.header] : [])];
  if (headers.length === 0) return;
  // A redacted file cannot be continued, because the key of its pseudonyms is not stored.
  if (order.redact) throw new UsageError(`--output ${file}: a redacted file cannot be continued; remove it`);
  if (headers.some(({ taskId }) => !order.taskIds.includes(taskId)))
    throw new UsageError(`--output ${file}: the file contains other tasks; choose another file`);
  const other = headers.find(({ contains }) => String(contains) !== String(kindsOf(order)));
  if (other !== undefined)
    throw new UsageError(`--output ${file}: the file contains ${other.contains.join(' and ')}; export the same, or remove it`);
  if (order.client === undefined && headers.some(({ redacted }) => redacted !== undefined))
    throw new UsageError(`--output ${file}: the file lacks what only --nats exports; remove it`);
}

async function openSource(order: Export): Promise<Source> {
  const { client, output, environment, signal } = order;
  const contains = kindsOf(order);
  if (client !== undefined) {
    const call = { signal, onNotice: noticePrinter(output), records: contains.join(',') };
    return {
      entries: (taskId, after) => {
        const options = after === undefined ? call : { ...call, after: encodeProgress(after.progress) };
        return readTaskFile(client.export(taskId, options), { after });
      },
      close: async () => {},
    };
  }
  // Loaded on demand: the other commands need no broker.
  const [log, { exportTask }] = await Promise.all([openLog(environment, 'hopline-export'), import('@hopline/task-transfer')]);
  return {
    async *entries(taskId, after) {
      const found = await exportTask(log, taskId, { hopline: VERSION, contains, now: Date.now() }).catch(undefinedForInvalidId);
      if (found === undefined) throw new A2AError('TASK_NOT_FOUND', { taskId });
      const { header, outcome, records } = found;
      if (after === undefined) yield { kind: 'header', header };
      for await (const entry of records(after?.progress)) {
        signal.throwIfAborted();
        yield entry;
      }
      // The writer counts the records itself and ignores these zeros.
      yield { kind: 'end', inputs: 0, facts: 0, lastInputSeq: 0, lastFactsSeq: 0, ...outcome };
    },
    close: () => log.close(),
  };
}
