import { A2AError, isInProgress, isLegacyTask, isTerminal, type TaskState } from '@hopline/a2a';
import {
  type ArtifactUpdated,
  type Fact,
  type FactRecord,
  isVisible,
  type TaskAggregate,
  type TraceCarrier,
} from '@hopline/events';
import {
  type FactLog,
  fromStart,
  HistoryLost,
  type Log,
  NO_LONGER_NEEDED,
  readTask,
  SharedNext,
  type StoredFacts,
  startSeqOf,
} from '@hopline/log';
import { projectRecord, TaskTimeline, type TaskView, TaskViewBuilder } from '@hopline/task';
import type { Limits } from '../limits.ts';
import { fromLog } from '../log-faults.ts';
import type { ByteBudget } from './byte-budget.ts';
import { FactRing } from './fact-ring.ts';
import type { FeedListener, ListenableFeed } from './feed-listener.ts';

import { HeldView } from './held-view.ts';
import { bytesOfParts, VisibleEntry } from './visible-entry.ts';
import { waitUntil } from './wait-for.ts';

/**
 * `new`: the task cannot have facts yet. `existing`: a task without facts is TASK_NOT_FOUND. `awaited`: facts may exist already or follow,
 * because a message of the task has been stored or will be.
 */
export type OpenMode = 'new' | 'existing' | 'awaited';

/** Memory of all feeds of a process. */
export type FeedBudgets = { rings: ByteBudget; views: ByteBudget };

/** `isTooLarge`: its artifacts have more than `answerBytesMax` and are left out, so only its status and messages can be used. */
export type ReadView = TaskView & { isTooLarge?: true };

/** The task as it is after the record with log sequence `seq`, and the bytes of its artifacts. */
export type ViewAt = { view: ReadView; seq: number; bytes: number };

/** The task as in ViewAt, with its timeline. */
export type HistoryAt = ViewAt & { timeline: TaskTimeline };

/**
 * Follows one task with a single subscription for all viewers of this process. Folds every fact, keeps the newest ones and notifies the
 * listeners. When the log has lost records of the task, the feed reads the remaining ones again from the beginning.
 */
export class TaskFeed implements ListenableFeed {
  readonly taskId: string;
  readonly ring: FactRing;
  /** Log sequence of the record from which new readers read the task; 0 while unknown. */
  startSeq = 0;
  /** Log sequence of the newest folded record. */
  lastSeq = 0;
  aggregate: TaskAggregate | undefined;
  /** The task was created in the legacy form. */
  isLegacy = false;
  fault: A2AError | undefined;
  /** Trace context of the newest record: the span of the relay that stored it, in the task's trace. */
  trace: TraceCarrier | undefined;
  readonly #log: Log;
  readonly #limits: Limits;
  readonly #artifacts = new Map<string, number>();
  readonly #listeners = new Set<FeedListener>();
  readonly #closing = new AbortController();
  readonly #budgets: FeedBudgets;
  #view: HeldView;
  /** Records up to this log sequence were stored before the reading began, so they do not arrive as live messages. */
  #storedTo = 0;
  /** Aborts the current reading when the feed closes, or when the log has lost records. */
  #reader = new AbortController();
  /** The newest generation of a lost history that viewers may have received, until a later one is folded. */
  #lostGeneration: number | undefined;
  #refoldTimer: NodeJS.Timeout | undefined;
  /** A read of the log in place of a dropped view. Requests share it until the next fact is folded. */
  #reading: { generation: number; result: Promise<ViewAt> } | undefined;
  /** Reads the newest record. The read is shared, so that thousands of clients that reconnect at the same time do not each ask for it. */
  readonly #newest = new SharedNext(() =>
    this.#log.facts.last(this.taskId).catch(thrown => {
      throw fromLog(thrown, this.taskId);
    }),
  );

  constructor(taskId: string, log: Log, limits: Limits, budgets: FeedBudgets) {
    this.taskId = taskId;
    this.ring = new FactRing(limits.ringFactsMax, limits.ringBytesMax, budgets.rings);
    this.#budgets = budgets;
    this.#view = new HeldView(budgets.views, limits.viewsBytesMax);
    this.#log = log;
    this.#limits = limits;
  }

  /** Resolves when the subscription is live and existing facts are folded. */
  async open(mode: OpenMode): Promise<void> {
    if (mode === 'new') return this.#openNew();
    try {
      const last = await this.#log.facts.last(this.taskId);
      if (last === undefined && mode === 'existing') throw new A2AError('TASK_NOT_FOUND');
      void this.#run(await this.#follow(last));
      if (last !== undefined) await this.#waitUntilFolded(last.record.aggregate);
    } catch (thrown) {
      this.close();
      throw fromLog(thrown, this.taskId);
    }
  }

  /**
   * The subscription leaves this process before the task's message, on the same connection, so waiting for its confirmation would only cost
   * a round trip. If a record is missed anyway, a gap or the check of the tail reveals it.
   */
  #openNew(): void {
    void this.#run(this.#log.facts.follow(this.taskId, 'new', this.#reader.signal));
  }

  #follow(last: StoredFacts | undefined): Promise<AsyncIterable<StoredFacts>> {
    this.startSeq = last === undefined ? 0 : startSeqOf(last);
    this.#storedTo = last?.seq ?? 0;
    const after = Math.max(0, this.startSeq - 1);
    return this.#log.facts.follow(this.taskId, after, this.#reader.signal, last?.record.aggregate.owner);
  }

  /** Generation of the newest event; 0 before the first. */
  get generation(): number {
    return this.aggregate?.generation ?? 0;
  }

  get state(): TaskState | undefined {
    return this.aggregate?.state;
  }

  /**
   * The task with at least every folded fact: from memory if it is kept there, otherwise from the log, which may be newer. Throws
   * TASK_NOT_FOUND or UNAVAILABLE.
   */
  async readView(): Promise<ViewAt> {
    const { view } = this.#view;
    const { bytes } = this.#view;
    if (view !== undefined && bytes <= this.#limits.answerBytesMax) return { view, seq: this.lastSeq, bytes };
    const { generation } = this;
    if (this.#reading?.generation === generation) return this.#reading.result;
    const result = this.#log.facts
      .last(this.taskId)
      .then(last => readView(this.#log.facts, last, this.#limits.answerBytesMax))
      .catch(thrown => {
        throw fromLog(thrown, this.taskId);
      });
    const reading = { generation, result };
    this.#reading = reading;
    try {
      return await result;
    } finally {
      if (this.#reading === reading) this.#reading = undefined;
    }
  }

  /** Whether `readView` answers from memory, with the task as of the newest folded fact. */
  get holdsView(): boolean {
    return !this.#view.isDropped;
  }

  /**
   * Reads the task with its timeline from the log; with `messageId`, the task as it was as soon as it had that message. Throws UNAVAILABLE
   * if the read lacks a fact that is already folded.
   */
  async readHistory(messageId?: string): Promise<HistoryAt> {
    const { generation } = this;
    const newest = await this.#newest.next();
    const history = await readHistory(this.#log.facts, newest, this.#limits.answerBytesMax, messageId).catch(thrown => {
      throw fromLog(thrown, this.taskId);
    });
    const read = messageId === undefined ? history.view : newest!.record.aggregate;
    if (read.generation < generation) throw new A2AError('UNAVAILABLE', { taskId: this.taskId });
    return history;
  }

  /** Resolves when every fact that is in the log now has been folded, so that a client finds here what it saw on another replica. */
  async refresh(): Promise<void> {
    if (this.ended) return;
    const { lastSeq } = this;
    const last = await this.#newest.next();
    if (last === undefined) throw new A2AError('TASK_NOT_FOUND');
    if (last.seq < lastSeq) this.#reader.abort(NO_LONGER_NEEDED);
    await this.#waitUntilFolded(last.record.aggregate);
  }

  /** The terminal fact is folded. No other fact can follow it, so the subscription is closed. */
  get ended(): boolean {
    return this.state !== undefined && isTerminal(this.state);
  }

  /**
   * Index of an artifact among the task's, in order of creation, from 0. It is stable even if a reader is ahead of the feed, because both
   * see new artifacts in the same order.
   */
  readonly artifactIndex = (artifactId: string): number => {
    const known = this.#artifacts.get(artifactId);
    if (known !== undefined) return known;
    this.#artifacts.set(artifactId, this.#artifacts.size);
    return this.#artifacts.size - 1;
  };

  listen(listener: FeedListener): void {
    this.#listeners.add(listener);
  }

  unlisten(listener: FeedListener): void {
    this.#listeners.delete(listener);
  }

  close(): void {
    clearTimeout(this.#refoldTimer);
    this.#closing.abort(NO_LONGER_NEEDED);
    this.#reader.abort(NO_LONGER_NEEDED);
  }

  /** Frees the memory of this feed. Call it when the feed has no users left. */
  empty(): void {
    this.ring.empty();
    this.#view.empty();
  }

  async #run(records: AsyncIterable<StoredFacts> | Promise<AsyncIterable<StoredFacts>>): Promise<void> {
    try {
      for await (const stored of fromStart(await records)) {
        // Another request may have dropped the feed in the meantime. Then it must not count in the budgets again.
        if (this.#reader.signal.aborted) break;
        if (!this.#follows(stored)) throw new HistoryLost('a record does not follow the one before it');
        this.#fold(stored);
        if (this.ended) return this.close();
      }
    } catch (thrown) {
      if (thrown instanceof HistoryLost) this.#reader.abort(NO_LONGER_NEEDED);
      else this.#fail(A2AError.from(fromLog(thrown, this.taskId)));
    }
    if (this.#closing.signal.aborted) return;
    if (this.#reader.signal.aborted) void this.#restart();
    else this.#fail(new A2AError('UNAVAILABLE', { taskId: this.taskId }));
  }

  /** Reads the task again. Notifies the viewers when the lost part has been folded again, or after `refoldMsMax`. */
  async #restart(): Promise<void> {
    this.#reader = new AbortController();
    this.#lostGeneration = Math.max(this.#lostGeneration ?? 0, this.generation);
    this.#view.empty();
    this.#view = new HeldView(this.#budgets.views, this.#limits.viewsBytesMax);
    this.ring.empty();
    this.lastSeq = 0;
    clearTimeout(this.#refoldTimer);
    this.#refoldTimer = setTimeout(() => void this.#settleWithoutLost(), this.#limits.refoldMsMax);
    try {
      void this.#run(await this.#follow(await this.#log.facts.last(this.taskId)));
    } catch (thrown) {
      this.#fail(A2AError.from(fromLog(thrown, this.taskId)));
    }
  }

  /** The log has lost records that are folded here, and the facts that replace them are not folded yet. */
  get #isRefolding(): boolean {
    return !this.#closing.signal.aborted && (this.#lostGeneration !== undefined || this.#reader.signal.aborted);
  }

  /**
   * Viewers get the task without the lost part only if the log has nothing newer. Otherwise a process whose path to the log is frozen would
   * show an older task than its viewers have received, although the lost part has been folded again elsewhere. Instead the feed fails, and
   * the clients reconnect to another process.
   */
  async #settleWithoutLost(): Promise<void> {
    const reader = this.#reader.signal;
    try {
      const newest = await this.#newest.next();
      if (reader.aborted || this.#lostGeneration === undefined) return;
      if (newest === undefined || newest.seq > this.lastSeq) throw new A2AError('UNAVAILABLE', { taskId: this.taskId });
      this.#settle();
    } catch (thrown) {
      if (!reader.aborted && this.#lostGeneration !== undefined) this.#fail(A2AError.from(thrown));
    }
  }

  #settle(): void {
    clearTimeout(this.#refoldTimer);
    this.#lostGeneration = undefined;
    for (const listener of this.#listeners) {
      if (listener.onReset === undefined) listener.onRecord?.();
      else listener.onReset();
    }
  }

  /**
   * Whether the record follows the newest folded one. Records that were already stored when the reading began always do, because they are
   * read in order.
   */
  #follows({ seq, record }: StoredFacts): boolean {
    if (this.lastSeq === 0 || seq <= this.#storedTo) return true;
    const first = record.facts.find(isVisible);
    if (first === undefined) return record.aggregate.generation === this.generation;
    return first.generation === this.generation + 1 || first.lostAfter === this.generation;
  }

  #fold(stored: StoredFacts): void {
    this.startSeq = Math.max(this.startSeq, startSeqOf(stored));
    this.lastSeq = stored.seq;
    this.aggregate = stored.record.aggregate;
    this.trace = stored.trace ?? this.trace;
    const live = stored.seq > this.#storedTo ? { storedAt: stored.storedAt, readAt: Date.now() } : undefined;
    this.#view.add(stored.record, fact => {
      if (fact.kind === 'task.created') this.isLegacy = isLegacyTask(fact.event.task);
      const entry = isVisible(fact) ? new VisibleEntry(fact, stored.seq, live) : undefined;
      if (entry !== undefined) this.ring.push(entry);
      if (fact.kind === 'artifact.updated') this.artifactIndex(fact.event.artifactUpdate.artifact.artifactId);
      else for (const listener of this.#listeners) listener.onChange?.(fact);
      return entry?.contentBytes ?? 0;
    });
    if (this.#lostGeneration === undefined) for (const listener of this.#listeners) listener.onRecord?.();
    else if (this.generation > this.#lostGeneration || this.ended) this.#settle();
  }

  #fail(fault: A2AError): void {
    if (this.fault !== undefined) return;
    this.fault = fault;
    this.close();
    for (const listener of this.#listeners) listener.onFault?.(fault);
  }

  async #waitUntilFolded(aggregate: TaskAggregate): Promise<void> {
    // Compared by content, because the newest message of the subject may not be a record.
    const reached = () =>
      !this.#isRefolding &&
      this.aggregate !== undefined &&
      this.aggregate.generation >= aggregate.generation &&
      this.aggregate.foldedSeq >= aggregate.foldedSeq;
    if ((await waitUntil(this, reached, { timeoutMs: this.#limits.freshMsMax })) !== 'met')
      throw new A2AError('UNAVAILABLE', { taskId: this.taskId });
  }

  /**
   * Resolves with true when the task has an event of this generation, and with false if it ends before or has none after `refoldMsMax`. A
   * client that names an event later than the newest one may have received events that the log has lost since. A relay that notices the
   * loss continues above their generations.
   */
  reaches(generation: number): Promise<boolean> {
    const isOver = () => this.ended || this.generation >= generation;
    return waitUntil(this, isOver, { timeoutMs: this.#limits.refoldMsMax }).then(() => this.generation >= generation);
  }
}

/** Reads the task whose newest record is given. Throws TASK_NOT_FOUND without a record. */
export function readView(facts: FactLog, last: StoredFacts | undefined, bytesMax: number): Promise<ViewAt> {
  return readRecords(facts, last, bytesMax, () => {});
}

/**
 * Reads the task whose newest record is given, with its timeline; with `messageId`, the task as it was as soon as it had that message.
 * Throws TASK_NOT_FOUND without a record.
 */
export async function readHistory(
  facts: FactLog,
  last: StoredFacts | undefined,
  bytesMax: number,
  messageId?: string,
): Promise<HistoryAt> {
  const timeline = new TaskTimeline();
  return { ...(await readRecords(facts, last, bytesMax, record => timeline.add(record), messageId)), timeline };
}

async function readRecords(
  facts: FactLog,
  last: StoredFacts | undefined,
  bytesMax: number,
  onRecord: (record: FactRecord) => void,
  messageId?: string,
): Promise<ViewAt> {
  if (last === undefined) throw new A2AError('TASK_NOT_FOUND');
  const builder = new TaskViewBuilder();
  const artifacts = new ArtifactBytes();
  let isTooLarge = false;
  let { seq } = last;
  const records = readTask(facts, last);
  for await (const stored of messageId === undefined ? records : untilMessage(records, messageId)) {
    for (const fact of stored.record.facts) if (fact.kind === 'artifact.updated') artifacts.count(fact);
    if (artifacts.bytes > bytesMax) {
      isTooLarge = true;
      builder.dropArtifacts();
    }
    builder.add(isTooLarge ? withoutParts(stored.record) : stored.record);
    onRecord(stored.record);
    seq = stored.seq;
  }
  const view = builder.view ?? projectRecord(undefined, last.record);
  const { bytes } = artifacts;
  if (!isTooLarge) return { view, seq, bytes };
  const { artifacts: _artifacts, ...task } = view.task;
  return { view: { ...view, task, isTooLarge }, seq, bytes };
}

/** The bytes of the artifacts of a task. */
class ArtifactBytes {
  readonly #artifacts = new Map<string, number>();
  bytes = 0;

  count({ event }: ArtifactUpdated): void {
    const { artifact, append } = event.artifactUpdate;
    const before = this.#artifacts.get(artifact.artifactId) ?? 0;
    const after = (append === true ? before : 0) + bytesOfParts(artifact.parts);
    this.#artifacts.set(artifact.artifactId, after);
    this.bytes += after - before;
  }
}

function withoutParts(record: FactRecord): FactRecord {
  const facts = record.facts.map((fact): Fact => {
    if (fact.kind !== 'artifact.updated') return fact;
    const { artifactUpdate } = fact.event;
    return { ...fact, event: { artifactUpdate: { ...artifactUpdate, artifact: { ...artifactUpdate.artifact, parts: [] } } } };
  });
  return { ...record, facts };
}

/**
 * The records of a task up to a message of the client, including the status with which the message sets the task to work. If no record adds
 * the message, all records. A record that copies facts forward also has later facts, which are cut off.
 */
async function* untilMessage(records: AsyncIterable<StoredFacts>, messageId: string): AsyncGenerator<StoredFacts> {
  let isAdded = false;
  for await (const stored of records) {
    const { record } = stored;
    const next = record.facts.findIndex(fact => {
      if (isAdded && isVisible(fact)) return true;
      isAdded ||= fact.kind === 'message.received' && fact.message.messageId === messageId;
      return false;
    });
    if (next === -1) {
      yield stored;
      continue;
    }
    const end = beginsWork(record.facts[next]!) ? next + 1 : next;
    const generation = record.aggregate.generation - record.facts.slice(end).filter(isVisible).length;
    yield { ...stored, record: { ...record, facts: record.facts.slice(0, end), aggregate: { ...record.aggregate, generation } } };
    return;
  }
}

function beginsWork(fact: Fact): boolean {
  return fact.kind === 'status.changed' && isInProgress(fact.event.statusUpdate.status.state);
}
