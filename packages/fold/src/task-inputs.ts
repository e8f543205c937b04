import type { CoalesceSettings } from '@hopline/coalesce';
import { type AgentRecord, type ClientInput, isRole, type TaskAggregate, type Writer } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { type ClientCommand, type Command, decide, isOfOtherAgent } from '@hopline/task';
import { AppendQueue, type QueuedCommand } from './append-queue.ts';
import type { InputLedger } from './input-ledger.ts';
import { alreadyFolded, OrdinalDeduplicator } from './ordinal-deduplicator.ts';
import { TaskText } from './task-text.ts';

/** Text of one record, UTF-16 units: large enough that a burst is one append, far below the log's record limit. */
const RECORD_TEXT_UNITS_MAX = 128 * 1024;

export type TaskInputsOptions = {
  taskId: string;
  aggregate: TaskAggregate | undefined;
  isExpired: boolean;
  ledger: InputLedger;
  context: {
    coalesce: CoalesceSettings;
    /** Monotonic milliseconds, for holds. */
    now: () => number;
    /** Epoch milliseconds, for the times of facts. */
    wallNow: () => number;
  };
};

/**
 * Turns the inputs of one task into commands in order: skips ordinals that are folded already, and holds text in the coalescer.
 */
export class TaskInputs {
  readonly #taskId: string;
  readonly #isExpired: boolean;
  readonly #now: () => number;
  readonly #wallNow: () => number;
  readonly #ledger: InputLedger;
  readonly #deduplicator: OrdinalDeduplicator;
  readonly #coalesce: CoalesceSettings;
  #text: TaskText;
  #queue: AppendQueue;
  #isDiscarded = false;
  #lastSeq: number;

  constructor({ taskId, aggregate, isExpired, ledger, context }: TaskInputsOptions) {
    this.#taskId = taskId;
    this.#isExpired = isExpired;
    this.#now = context.now;
    this.#queue = new AppendQueue(this.#now);
    this.#wallNow = context.wallNow;
    this.#ledger = ledger;
    this.#deduplicator = new OrdinalDeduplicator(aggregate);
    this.#lastSeq = aggregate?.foldedSeq ?? 0;
    this.#coalesce = context.coalesce;
    this.#text = new TaskText(context.coalesce, run => this.#queue.pushRun(run, RECORD_TEXT_UNITS_MAX));
  }

  /** Input sequence of the newest record that was accepted or folded. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Input sequence of the oldest record with text in the coalescer or a command in the queue. */
  get oldestSeq(): number | undefined {
    const { oldestSeq: held } = this.#text;
    const { oldestSeq: queued } = this.#queue;
    return held === undefined || (queued !== undefined && queued < held) ? queued : held;
  }

  /** UTF-16 units in the queue. */
  get queuedUnits(): number {
    return this.#queue.size;
  }

  get hasCommands(): boolean {
    return this.#queue.length > 0;
  }

  /** When `releaseDueText` must be called, monotonic milliseconds; undefined while no text waits for a time. */
  get wakeAt(): number | undefined {
    return this.#text.wakeAt;
  }

  /** Queues the commands of the next input. False for an input that was folded before. */
  accept(input: StoredInput, aggregate: TaskAggregate | undefined): boolean {
    if (input.seq <= this.#lastSeq) return false;
    this.#lastSeq = input.seq;
    const { record } = input;
    if (this.#isDiscarded) {
      this.#ledger.rejectRecord('input' in record ? [record.input] : record.inputs, 'unreadable');
      return true;
    }
    if (record.from !== 'client' && record.from !== 'relay') this.#acceptAgent(record, input, aggregate);
    else {
      const command: Command = record.from === 'relay' ? record.input : this.#clientCommand(record.input, input.writer);
      if (this.#interruptsText(command, aggregate)) this.#text.closeAll(this.#now());
      this.#ledger.receive(record.input.kind);
      this.#queue.push(command, input.seq);
    }
    return true;
  }

  /** Drops all text and commands, and those of every later input: the task has failed. */
  discard(): void {
    this.#isDiscarded = true;
    this.#text = new TaskText(this.#coalesce, () => {});
    this.#queue = new AppendQueue(this.#now);
  }

  /** Queues the failure of the task, although its inputs are discarded. */
  fail(seq: number): void {
    this.#queue.push({ kind: 'unreadable' }, seq);
  }

  /** Queues text whose hold time is over; all text when the task is over. */
  releaseDueText(isOver: boolean): void {
    if (this.#isDiscarded) return;
    this.#text.releaseDue(this.#now(), isOver);
  }

  /** Takes the commands of the next append. */
  takeBatch(): QueuedCommand[] {
    return this.#queue.take(RECORD_TEXT_UNITS_MAX);
  }

  #clientCommand(input: ClientInput, writer: Writer): ClientCommand {
    const server = isRole(writer) ? { server: writer } : {};
    // A message that is read again must not begin a task whose facts have expired.
    const isLate = this.#isExpired && input.kind === 'message';
    return { kind: 'client', taskId: this.#taskId, input: isLate ? { ...input, continues: true } : input, ...server };
  }

  /** The aggregate as the next record holds it, where every input up to `foldedSeq` is folded. */
  folded(aggregate: TaskAggregate, foldedSeq: number): TaskAggregate {
    return this.#deduplicator.withLastOrdinals({ ...aggregate, foldedSeq }, foldedSeq);
  }

  /** Input sequence of the oldest record whose ordinal the stored aggregate lacks. */
  get oldestUnstoredSeq(): number | undefined {
    return this.#deduplicator.oldestUnstoredSeq;
  }

  /** An aggregate of `folded` was stored. */
  stored(foldedSeq: number): void {
    this.#deduplicator.stored(foldedSeq);
  }

  #acceptAgent(record: AgentRecord, stored: StoredInput, aggregate: TaskAggregate | undefined): void {
    // Before its ordinals count: they would make those of the producer itself look like duplicates.
    if (aggregate !== undefined && isOfOtherAgent(aggregate, record.from)) {
      this.#ledger.rejectRecord(record.inputs, 'other agent');
      return;
    }
    const seen = this.#deduplicator.lookUp(record);
    if (seen === 'stale' || seen === 'other item') {
      this.#ledger.rejectRecord(record.inputs, seen === 'stale' ? 'stale attempt' : seen);
      return;
    }
    if (this.#deduplicator.hasGapBefore(record)) {
      this.#text.closeAll(this.#now());
      this.#queue.push({ kind: 'lost', from: record.from }, stored.seq);
    }
    let n = record.n;
    for (const input of record.inputs) {
      if (input.kind === 'text') {
        const folded = alreadyFolded(record, input, n, seen, aggregate);
        this.#ledger.receive('text', input.tokens.length);
        this.#ledger.settle('text', 'duplicate', folded.tokens);
        this.#text.offer(record, input, n, folded, stored, this.#now());
        n += input.tokens.length;
        continue;
      }
      this.#ledger.receive(input.kind);
      if (n <= seen.n) this.#ledger.settle(input.kind, 'duplicate');
      else {
        this.#text.flushFor(record.from, input, this.#now());
        const mark = { from: record.from, n };
        const isClosedByRun = input.kind === 'close' && this.#queue.closeWithRun(record.from, input.lane, mark);
        if (isClosedByRun) this.#ledger.settle('close', 'accepted');
        else this.#queue.push({ kind: 'agent', from: record.from, input }, stored.seq, mark);
      }
      n++;
    }
    this.#deduplicator.record(record, n - 1, seen, stored.seq);
    this.#deduplicator.compact((this.oldestSeq ?? stored.seq + 1) - 1);
  }

  /**
   * An input that changes nothing (a late timeout, a repeated message, a copy-forward) must not split a surrogate pair whose
   * second half is on its way. Before the first record of the task is stored, what it changes is unknown.
   */
  #interruptsText(command: Command, aggregate: TaskAggregate | undefined): boolean {
    if (command.kind === 'copy-forward') return false;
    return aggregate === undefined || decide(aggregate, command, this.#wallNow()).rejected === undefined;
  }
}
