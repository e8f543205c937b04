import { type AgentRecord, type ClientInput, isRole, type TaskAggregate, type Writer } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { type ClientCommand, type Command, decide, isOfOtherAgent, type TextRun } from '@hopline/task';
import type { CommandQueue } from './append-queue.ts';
import type { InputLedger } from './input-ledger.ts';
import { alreadyFolded, OrdinalDeduplicator } from './ordinal-deduplicator.ts';
import type { TextCutter } from './text-cutter.ts';

type TaskInputsOptions = {
  taskId: string;
  aggregate: TaskAggregate | undefined;
  isExpired: boolean;
  ledger: InputLedger;
  /** Cuts the text. Only this and the queue of commands depend on a clock. */
  text: TextCutter;
  queue: CommandQueue;
  /** Monotonic milliseconds, for holds. */
  now: () => number;
  /** Epoch milliseconds, the time of a decision. */
  wallNow: () => number;
};

/**
 * Turns the inputs of one task into commands, in order. Skips ordinals that are already folded, detects gaps, and releases held text before
 * a later non-text input.
 */
export class TaskInputs {
  readonly #options: Omit<TaskInputsOptions, 'aggregate' | 'text'>;
  readonly #deduplicator: OrdinalDeduplicator;
  /** Undefined once the inputs are discarded. */
  #text: TextCutter | undefined;
  #lastSeq: number;

  constructor({ aggregate, text, ...options }: TaskInputsOptions) {
    this.#options = options;
    this.#deduplicator = new OrdinalDeduplicator(aggregate);
    this.#lastSeq = aggregate?.foldedSeq ?? 0;
    this.#text = text;
  }

  /** Input sequence of the newest record that was accepted or folded. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Input sequence of the oldest record with held text or a command in the queue. */
  get oldestSeq(): number | undefined {
    const held = this.#text?.oldestSeq;
    const queued = this.#options.queue.oldestSeq;
    return held === undefined || (queued !== undefined && queued < held) ? queued : held;
  }

  /** Monotonic milliseconds at which `releaseDueText` must be called; undefined while no held text is waiting for its time. */
  get wakeAt(): number | undefined {
    return this.#text?.wakeAt;
  }

  /** Queues the commands of the next input. False for an input that was folded before. */
  accept(input: StoredInput, aggregate: TaskAggregate | undefined): boolean {
    if (input.seq <= this.#lastSeq) return false;
    this.#lastSeq = input.seq;
    const { record } = input;
    const { ledger, queue, now } = this.#options;
    const text = this.#text;
    if (text === undefined) {
      ledger.rejectRecord('input' in record ? [record.input] : record.inputs, 'unreadable');
      return true;
    }
    if (record.from !== 'client' && record.from !== 'relay') this.#acceptAgent(record, input, aggregate, text);
    else {
      const command: Command = record.from === 'relay' ? record.input : this.#clientCommand(record.input, input.writer);
      if (isConditional(command)) this.#queueRuns(text.flush(now()));
      else if (this.#interruptsText(command, aggregate)) this.#queueRuns(text.closeAll(now()));
      ledger.receive(record.input.kind);
      queue.push(command, input.seq);
    }
    return true;
  }

  /** Drops all held text and every later input: the task has failed. */
  discard(): void {
    this.#text = undefined;
  }

  /** Queues text whose hold time is over, or all text if the task is over. */
  releaseDueText(isOver: boolean): void {
    if (this.#text !== undefined) this.#queueRuns(this.#text.releaseDue(this.#options.now(), isOver));
  }

  /** The aggregate for the next record: all inputs count as folded except those whose text is held or whose commands are queued. */
  folded(aggregate: TaskAggregate): TaskAggregate {
    const foldedSeq = Math.max(aggregate.foldedSeq, (this.oldestSeq ?? this.#lastSeq + 1) - 1);
    return this.#deduplicator.withLastOrdinals({ ...aggregate, foldedSeq }, foldedSeq);
  }

  /** Input sequence of the oldest record whose ordinal is missing from the stored aggregate. */
  get oldestUnstoredSeq(): number | undefined {
    return this.#deduplicator.oldestUnstoredSeq;
  }

  /** Call it when an aggregate of `folded` was stored. */
  stored(foldedSeq: number): void {
    this.#deduplicator.stored(foldedSeq);
  }

  #queueRuns(runs: Iterable<TextRun>): void {
    for (const run of runs) this.#options.queue.pushRun(run);
  }

  #clientCommand(input: ClientInput, writer: Writer): ClientCommand {
    const server = isRole(writer) ? { server: writer } : {};
    // A message that is read again must not begin a task whose facts have expired.
    const isLate = this.#options.isExpired && input.kind === 'message';
    return { kind: 'client', taskId: this.#options.taskId, input: isLate ? { ...input, continues: true } : input, ...server };
  }

  #acceptAgent(record: AgentRecord, stored: StoredInput, aggregate: TaskAggregate | undefined, text: TextCutter): void {
    const { ledger, queue, now } = this.#options;
    // Checked before its ordinals count; otherwise the producer's own ordinals would later look like duplicates.
    if (aggregate !== undefined && isOfOtherAgent(aggregate, record.from)) {
      ledger.rejectRecord(record.inputs, 'other agent');
      return;
    }
    const seen = this.#deduplicator.lookUp(record);
    if (seen === 'stale' || seen === 'other item') {
      ledger.rejectRecord(record.inputs, seen === 'stale' ? 'stale attempt' : seen);
      return;
    }
    if (this.#deduplicator.hasGapBefore(record)) {
      this.#queueRuns(text.closeAll(now()));
      queue.push({ kind: 'lost', from: record.from }, stored.seq);
    }
    let n = record.n;
    for (const input of record.inputs) {
      if (input.kind === 'text') {
        const folded = alreadyFolded(record, input, n, seen, aggregate);
        ledger.receive('text', input.tokens.length);
        ledger.settle('text', 'duplicate', folded.tokens);
        this.#queueRuns(text.offer(record, input, n, folded, stored, now()));
        n += input.tokens.length;
        continue;
      }
      ledger.receive(input.kind);
      if (n <= seen.n) ledger.settle(input.kind, 'duplicate');
      else {
        this.#queueRuns(text.flushFor(record.from, input, now()));
        const mark = { from: record.from, n };
        const isClosedByRun = input.kind === 'close' && queue.closeWithRun(record.from, input.lane, mark);
        if (isClosedByRun) ledger.settle('close', 'accepted');
        else queue.push({ kind: 'agent', from: record.from, input }, stored.seq, mark);
      }
      n++;
    }
    this.#deduplicator.record(record, n - 1, seen, stored.seq);
    this.#deduplicator.compact((this.oldestSeq ?? stored.seq + 1) - 1);
  }

  /**
   * An input that changes nothing (a late timeout, a repeated message, a copy-forward) must not split a surrogate pair whose second half is
   * on its way. Before the first record of the task is stored, it is not known what an input changes.
   */
  #interruptsText(command: Command, aggregate: TaskAggregate | undefined): boolean {
    if (command.kind === 'copy-forward') return false;
    return aggregate === undefined || decide(aggregate, command, this.#options.wallNow()).rejected === undefined;
  }
}

/**
 * Whether the message is accepted only at one generation. If text is held, that text becomes an event first, and the message is then
 * rejected. So the text must not be cut within a character.
 */
function isConditional(command: Command): boolean {
  return command.kind === 'client' && command.input.kind === 'message' && command.input.ifGeneration !== undefined;
}
