import { isDeepStrictEqual } from 'node:util';
import { isTerminal, stateWord } from '@hopline/a2a';
import { joinContext } from '@hopline/context-history';
import type { FactRecord, Owner, TaskAggregate } from '@hopline/events';
import { fromStart, IMPORTER, type Log, putTask, type StoredFacts, startSeqOf } from '@hopline/log';
import { decide, evolve, TaskViewBuilder } from '@hopline/task';
import type { TaskEntry, TaskHeader } from '@hopline/task-file';
import { type Binding, rebindRecord } from './rebind-record.ts';

/** Key of the task's metadata that links an imported task to the one that was exported. Only Hopline writes keys of this prefix. */
const ORIGIN_KEY = 'hopline.origin';
/** Bytes that new ids, the link and the position in the log may add to a record. */
const BINDING_BYTES = 1_024;

export type ImportOptions = {
  /**
   * True if the tasks keep their ids, contexts and owners. If the log already has a task, it must be the one in the file. An interrupted
   * import is repeated in this way, and continues after the last record that it stored. An ended task that the cluster itself stored is not
   * changed.
   */
  sameIds: boolean;
  /** Owner of tasks with new ids. Absent: no owner, as without authentication. */
  owner?: Owner | undefined;
  /** True if open tasks are imported as canceled. Default: they are refused. */
  endsOpen?: boolean;
  newId(): string;
  /** Epoch milliseconds. */
  now(): number;
};

export type ImportedTask = { taskId: string; contextId: string; origin: string; records: number };

/** The file is correct, but must not be imported here. One sentence. */
export class ImportRefused extends Error {
  override readonly name = 'ImportRefused';
}

/**
 * Checks a whole file before any of it is stored. Resolves with its number of records. Throws TaskFileError and ImportRefused. An open task
 * is refused, or ended by the import, because no worker of this cluster has its work.
 */
export async function checkImport(
  log: Pick<Log, 'facts' | 'tasks' | 'recordBytesMax'>,
  entries: AsyncIterable<TaskEntry>,
  { sameIds, endsOpen }: Pick<ImportOptions, 'sameIds' | 'endsOpen'>,
): Promise<number> {
  let header: TaskHeader | undefined;
  let task = new TaskViewBuilder();
  let earlier: EarlierRecords | undefined;
  let records = 0;
  const known = new Set<string>();
  for await (const entry of entries) {
    if (entry.kind === 'header') {
      ({ header } = entry);
      task = new TaskViewBuilder();
      requireWhole(header);
      if (known.has(header.taskId)) throw new ImportRefused(`task ${header.taskId} is in the file twice`);
      known.add(header.taskId);
      earlier = sameIds ? await earlierRecords(log, header.taskId) : undefined;
    } else if (entry.kind === 'facts') {
      records += 1;
      fold(task, entry.record, header!.taskId);
      await earlier?.next(entry.record, rebindRecord(entry.record, sameBinding(header!)));
      const bytes = Buffer.byteLength(JSON.stringify(entry.record)) + BINDING_BYTES;
      if (bytes > log.recordBytesMax)
        throw new ImportRefused(
          `task ${header!.taskId} has a record of ${bytes} bytes, and this log accepts ${log.recordBytesMax}`,
        );
    } else if (entry.kind === 'end') {
      const isOpen = !isTerminal(entry.state);
      if (isOpen && endsOpen !== true)
        throw new ImportRefused(
          `task ${header!.taskId} is ${stateWord(entry.state)}: import it with --end-open, which ends open tasks as canceled`,
        );
      // The earlier import may have ended the open task.
      await earlier?.requireEnd(isOpen ? 1 : 0);
    }
  }
  return records;
}

function requireWhole({ taskId, contains, partial = [] }: TaskHeader): void {
  if (!contains.includes('facts')) throw new ImportRefused(`the file has no facts of task ${taskId}: export it with its facts`);
  if (partial.includes('facts')) throw new ImportRefused(`the first facts of task ${taskId} had expired when it was exported`);
}

/** Folds a record. A file may be correct line by line and still not describe a possible task. */
function fold(task: TaskViewBuilder, record: FactRecord, taskId: string): void {
  try {
    task.add(record);
  } catch {
    throw new ImportRefused(`the facts of task ${taskId} do not make a task`);
  }
}

/**
 * Stores the tasks of a file that `checkImport` has accepted, one after the other, and yields each when it is complete. Lists and contexts
 * name a task only then; until then no client knows its new id. Inputs are not stored, because a relay would run them.
 */
export async function* importTasks(
  log: Pick<Log, 'facts' | 'tasks' | 'taskLists' | 'layouts' | 'contexts'>,
  entries: AsyncIterable<TaskEntry>,
  options: ImportOptions,
): AsyncGenerator<ImportedTask, void> {
  /** Tasks of one context stay in one context. */
  const contexts = new Map<string, string>();
  let task: TaskInLog | undefined;
  for await (const entry of entries) {
    if (entry.kind === 'header') {
      const earlier = options.sameIds ? await earlierRecords(log, entry.header.taskId) : undefined;
      task = new TaskInLog(log, bindingOf(entry.header, options, contexts), options.now(), earlier);
    } else if (entry.kind === 'facts') await task!.append(entry.record);
    else if (entry.kind === 'end') yield await task!.complete();
  }
}

function bindingOf(header: TaskHeader, { sameIds, owner, newId }: ImportOptions, contexts: Map<string, string>): BoundTask {
  const { taskId, contextId } = header;
  if (sameIds) return sameBinding(header);
  const newContext = contexts.get(contextId) ?? newId();
  contexts.set(contextId, newContext);
  return { origin: taskId, taskId: newId(), contextId: newContext, owner, shiftMs: 0, metadata: { [ORIGIN_KEY]: taskId } };
}

type BoundTask = Binding & { origin: string };

function sameBinding({ taskId, contextId, owner }: TaskHeader): BoundTask {
  return { origin: taskId, taskId, contextId, owner, shiftMs: 0 };
}

/** The records that the log already has of the task with this id. Throws ImportRefused if the task is open and no import has made it. */
async function earlierRecords(
  { facts, tasks }: Pick<Log, 'facts' | 'tasks'>,
  taskId: string,
): Promise<EarlierRecords | undefined> {
  const newest = await facts.last(taskId);
  if (newest === undefined) return undefined;
  const { state, owner } = newest.record.aggregate;
  // Relays list each task that they fold; an import lists a task when it is complete.
  if (!isTerminal(state) && (await tasks.get(taskId)) !== undefined)
    throw new ImportRefused(`task ${taskId} is ${stateWord(state)} in this cluster: import it with new ids`);
  const records = fromStart(facts.read(taskId, startSeqOf(newest), owner));
  return new EarlierRecords(taskId, records, newest.relay === IMPORTER);
}

/** The records that the log has of a task: those of an interrupted import, or those of the exported task itself. */
class EarlierRecords {
  readonly #taskId: string;
  readonly #records: AsyncIterator<StoredFacts, unknown>;
  readonly #isImported: boolean;

  constructor(taskId: string, records: AsyncIterable<StoredFacts>, isImported: boolean) {
    this.#taskId = taskId;
    this.#records = records[Symbol.asyncIterator]();
    this.#isImported = isImported;
  }

  /**
   * The next stored record; undefined after the last. Throws ImportRefused if its content differs from the file. `recorded`: the record in
   * the file; `rebound`: the same record as an import stores it.
   */
  async next(recorded: FactRecord, rebound: FactRecord): Promise<StoredFacts | undefined> {
    const next = await this.#records.next();
    if (next.done === true) return undefined;
    if (!isDeepStrictEqual(contentOf(next.value.record), contentOf(this.#isImported ? rebound : recorded)))
      throw new ImportRefused(`this cluster has another task ${this.#taskId}: import the file with new ids`);
    return next.value;
  }

  /** Throws ImportRefused if more than `max` records are left. */
  async requireEnd(max: number): Promise<void> {
    for (let left = 0; !(await this.#records.next()).done; left += 1)
      if (left >= max) throw new ImportRefused(`task ${this.#taskId} has more records in this cluster than in the file`);
  }
}

/** The record without its place in a log. */
function contentOf({ facts, aggregate }: FactRecord): unknown {
  return JSON.parse(JSON.stringify({ facts, aggregate }));
}

/** A task while it is stored record by record. */
class TaskInLog {
  readonly #origin: string;
  readonly #log: Pick<Log, 'facts' | 'tasks' | 'taskLists' | 'layouts' | 'contexts'>;
  readonly #binding: Binding;
  readonly #earlier: EarlierRecords | undefined;
  #now: number;
  #newest: FactRecord | undefined;
  #seq = 0;
  #startSeq = 0;
  #records = 0;

  constructor(
    log: Pick<Log, 'facts' | 'tasks' | 'taskLists' | 'layouts' | 'contexts'>,
    { origin, ...binding }: BoundTask,
    now: number,
    earlier: EarlierRecords | undefined,
  ) {
    this.#origin = origin;
    this.#log = log;
    this.#binding = binding;
    this.#now = now;
    this.#earlier = earlier;
  }

  async append(record: FactRecord): Promise<void> {
    await this.#store(rebindRecord(record, this.#binding), record);
  }

  async #store(record: FactRecord, recorded = record): Promise<void> {
    const earlier = await this.#earlier?.next(recorded, record);
    // The records after it get the time of the first import.
    if (earlier !== undefined) this.#now = earlier.record.startStoredAt;
    const stored = { ...record, startSeq: this.#startSeq, startStoredAt: this.#now };
    const id = `${this.#binding.taskId}:${IMPORTER}:${this.#records}`;
    const { seq } = earlier ?? (await this.#log.facts.append(stored, { expected: this.#seq, id }));
    this.#seq = seq;
    this.#startSeq ||= seq;
    this.#newest = stored;
    this.#records += 1;
  }

  /** Ends the task as its client could: its open artifacts are closed, and no relay waits for a worker. */
  async #cancel({ aggregate }: FactRecord): Promise<void> {
    const command = { kind: 'client', taskId: aggregate.taskId, input: { kind: 'cancel' } } as const;
    const { facts } = decide(aggregate, command, Math.max(aggregate.at, this.#now));
    await this.#store({ v: 1, facts, aggregate: facts.reduce<TaskAggregate>(evolve, aggregate), startSeq: 0, startStoredAt: 0 });
  }

  async complete(): Promise<ImportedTask> {
    if (!isTerminal(this.#newest!.aggregate.state)) await this.#cancel(this.#newest!);
    const { aggregate } = this.#newest!;
    const { taskId, contextId, role, state, generation, at, owner } = aggregate;
    const imported = { taskId, contextId, origin: this.#origin, records: this.#records };
    // A relay has moved the entry into the list of the owner by now, so another entry would be a second row.
    if (this.#earlier !== undefined && (await this.#isListed(aggregate))) return imported;
    await joinContext(this.#log, { owner, contextId, taskId });
    // Relays remove the row of a list by its sequence once retention has removed the task.
    const place = { startSeq: this.#startSeq, startStoredAt: this.#now, seq: this.#seq };
    await putTask(this.#log, taskId, { contextId, role, state, ...place, generation, at, ...(owner && { owner }) });
    return imported;
  }

  /** Whether an earlier import has completed the task: the entry by id is written last. */
  async #isListed({ taskId, generation }: TaskAggregate): Promise<boolean> {
    const entry = (await this.#log.tasks.get(taskId))?.value;
    return entry !== undefined && isTerminal(entry.state) && entry.generation >= generation;
  }
}
