import { isInProgress, isTerminal } from '@hopline/a2a';
import { type AgentRecord, type CallInput, foldedOrdinal, type InputRecord, type TaskAggregate } from '@hopline/events';
import { AppendQueue, CoalescedText, InputLedger, type QueuedCommand, TaskInputs, withoutStaleOrdinals } from '@hopline/fold';
import type { StoredFacts, StoredInput } from '@hopline/log';
import { SUPERVISOR } from '@hopline/task';
import { snakeWord } from '@hopline/telemetry';
import type { PipelineContext, StoredChange } from './pipeline-context.ts';
import { reportStored } from './report-stored.ts';
import { isTaskFault, TaskAppender } from './task-appender.ts';
import { TaskHop } from './task-hop.ts';

function withExactOrdinals({ record, ...stored }: StoredFacts): StoredFacts {
  return { ...stored, record: { ...record, aggregate: withoutStaleOrdinals(record.aggregate) } };
}

/**
 * One task in the relay. An input becomes commands, the decider turns them into facts, one append at a time stores the facts, side effects
 * follow, and then the checkpoint passes the input. All state comes from the log. A new pipeline made from the newest record continues
 * where this one stopped, and from then on the appends of the old one fail.
 */
export class TaskPipeline {
  readonly taskId: string;
  readonly #context: PipelineContext;
  readonly #hop: TaskHop;
  readonly #ledger: InputLedger;
  readonly #queue: AppendQueue;
  readonly #inputs: TaskInputs;
  readonly #appender: TaskAppender;
  readonly #barriers = new CheckpointBarriers();
  #isReplayIndexed = false;
  #isAppending = false;
  /** True if an input could not be applied: the task is failing or was dropped. */
  #isRejected = false;
  #isStopped = false;
  #textTimer: NodeJS.Timeout | undefined;
  /** When the server received the newest message, epoch milliseconds. */
  #receivedAt: number | undefined;
  /** When the last input was accepted, monotonic milliseconds: the shard evicts idle tasks. */
  lastInputAt: number;

  /** `expired`: the task existed, but its facts are gone, so a message must not begin it again. */
  constructor(taskId: string, stored: StoredFacts | 'new' | 'expired', context: PipelineContext) {
    const newest = typeof stored === 'string' ? undefined : withExactOrdinals(stored);
    const { aggregate } = newest?.record ?? {};
    const isOpen = aggregate !== undefined && !isTerminal(aggregate.state);
    const takeover = isOpen && aggregate.at < context.owned.at ? context.owned : undefined;
    const hop = new TaskHop({ taskId, layouts: context.layouts(), newest, isTakeover: takeover !== undefined });
    const { metrics, now, wallNow } = context;
    const ledger = new InputLedger({
      onOutcome: (kind, outcome, count) => metrics.inputs.add(count, { kind, outcome }),
      onRejected: (reason, count) => {
        hop.rejected(count);
        metrics.inputsRejected.add(count, { reason: snakeWord(reason) });
      },
    });
    const queue = new AppendQueue(now);
    const text = new CoalescedText(context.coalesce);
    const isExpired = stored === 'expired';
    const inputs = new TaskInputs({ taskId, aggregate, isExpired, ledger, text, queue, now, wallNow });
    this.taskId = taskId;
    this.#context = context;
    this.#hop = hop;
    this.#ledger = ledger;
    this.#queue = queue;
    this.#inputs = inputs;
    this.#appender = new TaskAppender({ taskId, newest, takeover, ledger, context, inputs, trace: () => hop.carrier() });
    this.lastInputAt = now();
  }

  get aggregate(): TaskAggregate | undefined {
    return this.#appender.aggregate;
  }

  /** UTF-16 units that wait for an append. */
  get queuedUnits(): number {
    return this.#queue.size;
  }

  /** True if no text is held, no command is queued, and no append or side effect is in flight. */
  get isIdle(): boolean {
    return this.#oldestPendingSeq() === undefined;
  }

  /** True if text is held, a command is queued, or an append or side effect is in flight. Does not count a record that led to no fact. */
  get isBusy(): boolean {
    return this.#barriers.lowest(this.#inputs.oldestSeq) !== undefined;
  }

  /** True if the log may hold a record of the task that this relay does not know, because the append has not been answered. */
  get hasUnansweredAppend(): boolean {
    return this.#appender.isUnanswered;
  }

  /** Every input of the task up to this sequence is folded, even if no stored fact shows it yet. */
  get foldedSeq(): number {
    return (this.#barriers.lowest(this.#inputs.oldestSeq) ?? this.#inputs.lastSeq + 1) - 1;
  }

  /** Every input of the task up to this sequence is folded, and its side effects are done. */
  get checkpoint(): number {
    return (this.#oldestPendingSeq() ?? this.#inputs.lastSeq + 1) - 1;
  }

  stop(): void {
    this.#isStopped = true;
    this.#appender.stop();
    clearTimeout(this.#textTimer);
    this.#hop.end();
    this.#ledger.close();
  }

  /** Accepts the next input of the task, in the order of the input log. */
  accept(input: StoredInput): void {
    this.lastInputAt = this.#context.now();
    const { record } = input;
    if (record.from === 'client' && record.input.kind === 'message') this.#receivedAt = record.at;
    let isNew = false;
    this.#guard(input.seq, () => {
      isNew = this.#inputs.accept(input, this.aggregate);
      if (isNew) this.#hop.input(input, this.aggregate);
      this.#replaySideEffects(input, isNew);
    });
    if (isNew) this.#advance();
  }

  /** Queues the text that is due, sets the timer for the rest, and appends what is queued. */
  #advance(): void {
    this.#guard(this.#inputs.lastSeq, () => {
      this.#inputs.releaseDueText(this.aggregate !== undefined && isTerminal(this.aggregate.state));
      this.#scheduleText();
    });
    this.#startAppending();
  }

  /** A fault of one task must not stop its shard or the process. Instead, the task fails. */
  #guard(seq: number, step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#reject(seq, error);
    }
  }

  /** Makes the task fail visibly. If even that is impossible, drops everything that this process holds of it. */
  #reject(seq: number, error: unknown): void {
    const isSecond = this.#isRejected;
    this.#isRejected = true;
    this.#context.onRejectedRecord({ seq, taskId: this.taskId, fault: 'not applicable', error, trace: this.#hop.carrier() });
    this.#inputs.discard();
    this.#queue.clear();
    if (isSecond) return;
    this.#queue.push({ kind: 'unreadable' }, seq);
    this.#startAppending();
  }

  /** A timer runs while text is held, so that the tail of a stalled source is released too. */
  #scheduleText(): void {
    clearTimeout(this.#textTimer);
    const { wakeAt } = this.#inputs;
    if (wakeAt === undefined || this.#isStopped) return;
    this.#textTimer = setTimeout(() => this.#advance(), Math.max(0, wakeAt - this.#context.now()));
  }

  #startAppending(): void {
    if (this.#isAppending || this.#isStopped || this.#queue.length === 0) return;
    this.#isAppending = true;
    this.#appendQueued().then(
      () => {
        this.#isAppending = false;
        // An input may have arrived since the queue was last checked, or the task may have ended while text was held.
        if (!this.#isStopped) this.#advance();
      },
      error => {
        this.#isAppending = false;
        if (isTaskFault(error)) this.#reject(this.#inputs.lastSeq, error);
        else this.#fail(error);
      },
    );
  }

  async #appendQueued(): Promise<void> {
    while (this.#queue.length > 0 && !this.#isStopped) {
      const batch = this.#queue.take();
      const oldestSeq = Math.min(...batch.map(({ firstSeq }) => firstSeq));
      this.#barriers.hold(oldestSeq);
      try {
        await this.#appendBatch(batch, oldestSeq);
      } catch (error) {
        // After any other error the log has not stored the batch, and the batch's barrier keeps the checkpoint before it.
        if (isTaskFault(error)) this.#barriers.release(oldestSeq);
        throw error;
      }
      this.#barriers.release(oldestSeq);
    }
  }

  async #appendBatch(batch: readonly QueuedCommand[], oldestSeq: number): Promise<void> {
    const step = await this.#appender.append(batch);
    if (step !== undefined) {
      this.#inputs.stored(step.aggregate.foldedSeq);
      // Side effects begin first, because a worker waits for the work.
      this.#applySideEffects(step, oldestSeq);
      this.#hop.stored(step);
      const unfoldedSince = this.#hop.takeTakeover();
      reportStored(step, this.#context, { trace: this.#hop.carrier(), receivedAt: this.#receivedAt, unfoldedSince });
    }
    for (const { command } of batch) {
      const copied = command.kind === 'copy-forward' ? await this.#appender.copyForward(command) : undefined;
      if (copied !== undefined) this.#applySideEffects(copied, oldestSeq);
    }
  }

  /**
   * After a takeover, an input that is already folded is read again, and its side effects may be missing. One write of the task index
   * covers all such inputs. A call or a status may be folded before the rest of its record if the text before it was held.
   */
  #replaySideEffects({ record, seq, storedAt }: StoredInput, isNew: boolean): void {
    const calls = this.#foldedCalls(record);
    const message = record.from === 'client' && record.input.kind === 'message' ? record.input : undefined;
    const isFolded = !isNew || this.#isFoldedInPart(record);
    if (calls.length === 0 && (!isFolded || (message === undefined && this.#isReplayIndexed))) return;
    const step = this.#appender.replay({ storedAt, calls, ...(message && { message }) });
    if (step === undefined) return;
    this.#isReplayIndexed = true;
    this.#applySideEffects(step, seq);
  }

  /** Whether the newest stored aggregate includes some of the inputs of an agent's record. */
  #isFoldedInPart(record: InputRecord): boolean {
    const { aggregate } = this;
    if (aggregate === undefined || typeof record.from === 'string') return false;
    return record.from.turn === aggregate.turn && foldedOrdinal(aggregate, record.from) >= (record as AgentRecord).n;
  }

  /** The calls of a record that are in the newest stored aggregate. */
  #foldedCalls(record: InputRecord): CallInput[] {
    const { aggregate } = this;
    if (aggregate === undefined || typeof record.from === 'string' || record.from.id !== SUPERVISOR) return [];
    if (record.from.turn !== aggregate.turn) return [];
    return (record as AgentRecord).inputs.filter(
      (input): input is CallInput => input.kind === 'call' && Object.hasOwn(aggregate.calls, input.call),
    );
  }

  /** Holds the shard's checkpoint below `seq` until the side effects are done. */
  #applySideEffects(step: StoredChange, seq: number): void {
    const effect = this.#context.applySideEffects(step, this.#hop.carrier(), () => this.#isStopped);
    if (effect === undefined) return;
    this.#barriers.hold(seq);
    effect.then(
      () => this.#barriers.release(seq),
      error => {
        if (!isTaskFault(error)) return this.#fail(error);
        this.#barriers.release(seq);
        this.#reject(seq, error);
      },
    );
  }

  #fail(error: unknown): void {
    this.#hop.fail(error);
    this.stop();
    this.#context.onFailure(error);
  }

  #oldestPendingSeq(): number | undefined {
    const pending = this.#barriers.lowest(this.#inputs.oldestSeq);
    const unstored = this.#isRunning ? this.#inputs.oldestUnstoredSeq : undefined;
    return pending === undefined || (unstored !== undefined && unstored < pending) ? unstored : pending;
  }

  /**
   * True while producers continue to write, so that their next fact will store the ordinals. A task that has ended, failed or waits may
   * never get another fact.
   */
  get #isRunning(): boolean {
    const state = this.aggregate?.state;
    return !this.#isRejected && state !== undefined && isInProgress(state);
  }
}

/**
 * Input sequences that hold back the shard's checkpoint while an append or side effect of theirs is in flight. A sequence may be held more
 * than once.
 */
class CheckpointBarriers {
  readonly #holds = new Map<number, number>();

  hold(seq: number): void {
    this.#holds.set(seq, (this.#holds.get(seq) ?? 0) + 1);
  }

  release(seq: number): void {
    const count = (this.#holds.get(seq) ?? 1) - 1;
    if (count === 0) this.#holds.delete(seq);
    else this.#holds.set(seq, count);
  }

  /** The lowest of `other` and the held sequences. */
  lowest(other: number | undefined): number | undefined {
    let lowest = other;
    for (const seq of this.#holds.keys()) {
      if (lowest === undefined || seq < lowest) lowest = seq;
    }
    return lowest;
  }
}
