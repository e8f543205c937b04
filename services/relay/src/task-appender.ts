import { isTerminal } from '@hopline/a2a';
import type { CopyForwardInput, Fact, FactRecord, Takeover, TaskAggregate, TraceCarrier } from '@hopline/events';
import { RecordTooLarge, type StoredFacts, startSeqOf } from '@hopline/log';
import { type Command, decide, evolve, failTask, isKnownProducer } from '@hopline/task';
import type { QueuedCommand } from './append-queue.ts';
import { copyForward, type TaskStart } from './copy-forward.ts';
import type { InputLedger } from './input-ledger.ts';
import type { PipelineContext, StoredStep } from './pipeline-context.ts';

const TOO_LARGE = 'an event of this task is larger than the log accepts';
const NOT_ENCODABLE = 'an event of this task cannot be encoded';

export type TaskAppenderOptions = {
  taskId: string;
  newest: StoredFacts | undefined;
  /** Set when another owner of the shard stored `newest`: the next record contains it. */
  takeover: Takeover | undefined;
  ledger: InputLedger;
  context: Pick<PipelineContext, 'facts' | 'now' | 'wallNow' | 'appendId' | 'onAppend'>;
  /** Marks every input that the next append folds. */
  folded: (aggregate: TaskAggregate) => TaskAggregate;
  trace: () => TraceCarrier;
};

type Decision = { facts: Fact[]; aggregate: TaskAggregate | undefined };

/**
 * Decides commands and appends their facts, each record with the sequence of the record before it: an append of a relay that lost
 * the task fails with LogConflict. The caller keeps one call in flight.
 */
export class TaskAppender {
  readonly #options: TaskAppenderOptions;
  #aggregate: TaskAggregate | undefined;
  #newestSeq: number;
  #taskStart: TaskStart | undefined;
  #takeover: Takeover | undefined;
  #isStopped = false;

  constructor(options: TaskAppenderOptions) {
    const { newest, takeover } = options;
    this.#options = options;
    this.#aggregate = newest?.record.aggregate;
    this.#newestSeq = newest?.seq ?? 0;
    this.#taskStart = newest && { startSeq: startSeqOf(newest), startStoredAt: newest.record.startStoredAt };
    this.#takeover = takeover;
  }

  /** The task as its newest record left it. */
  get aggregate(): TaskAggregate | undefined {
    return this.#aggregate;
  }

  /** Ends a copy-forward before its next part. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Appends the facts of a batch as one record. Resolves with undefined when the batch made no fact, or no record can hold its
   * first one.
   */
  async append(batch: readonly QueuedCommand[]): Promise<StoredStep | undefined> {
    return this.#appendFacts(this.#decide(batch));
  }

  /**
   * Copies the facts of an open task forward. Resolves with undefined when the task has ended, or this relay stopped meanwhile. A
   * start that differs from the command's was copied by the previous owner; the step is returned all the same, because that relay
   * may have died before it wrote the task index, and without the entry the next copy-forward never falls due.
   */
  async copyForward({ startStoredAt }: CopyForwardInput): Promise<StoredStep | undefined> {
    const { context, ledger } = this.#options;
    const [aggregate, taskStart] = [this.#aggregate, this.#taskStart];
    if (aggregate === undefined || taskStart === undefined || isTerminal(aggregate.state)) return undefined;
    if (taskStart.startStoredAt === startStoredAt) {
      const newest: StoredFacts = { seq: this.#newestSeq, record: { v: 1, facts: [], aggregate, ...taskStart } };
      const nowMs = Math.round(context.wallNow());
      const append = (record: FactRecord) => (this.#isStopped ? undefined : this.#appendRecord(record));
      const copied = await copyForward(context.facts, newest, nowMs, append);
      if (copied === 'stopped') return undefined;
      if (copied === 'tooLarge') ledger.reject('too large', 1);
      this.#taskStart = copied === 'tooLarge' ? { ...taskStart, startStoredAt: nowMs } : copied;
    }
    return this.replay();
  }

  /** The step of an input that was folded before; undefined when there is no task. */
  replay(replay: NonNullable<StoredStep['replay']> = {}): StoredStep | undefined {
    return this.#aggregate && { facts: [], aggregate: this.#aggregate, seq: this.#newestSeq, ...this.#taskStart!, replay };
  }

  #decide(batch: readonly QueuedCommand[]): Decision {
    let aggregate = this.#aggregate;
    const facts: Fact[] = [];
    for (const queued of batch) {
      const { mark } = queued;
      const command = withWait(queued, this.#options.context.now());
      const decision = decide(aggregate, command, this.#options.context.wallNow());
      this.#options.ledger.settleCommand(command, decision.rejected);
      for (const fact of decision.facts) {
        facts.push(fact);
        aggregate = evolve(aggregate, fact);
      }
      const isRefused = decision.rejected === 'other item' || decision.rejected === 'stale attempt';
      if (mark !== undefined && aggregate !== undefined && !isRefused) aggregate = withMark(aggregate, mark);
    }
    return { facts, aggregate };
  }

  async #appendFacts({ facts, aggregate }: Decision): Promise<StoredStep | undefined> {
    if (facts.length === 0 || aggregate === undefined) {
      this.#aggregate = aggregate;
      return undefined;
    }
    const folded = this.#options.folded(aggregate);
    const taskStart = this.#taskStart ?? { startSeq: 0, startStoredAt: folded.at };
    try {
      await this.#appendRecord({ v: 1, facts, aggregate: folded, ...taskStart });
    } catch (error) {
      if (!isTaskFault(error) || isFailureOfRelay(facts)) throw error;
      return this.#reject(facts, error instanceof RecordTooLarge ? TOO_LARGE : NOT_ENCODABLE);
    }
    this.#aggregate = folded;
    this.#taskStart ??= { ...taskStart, startSeq: this.#newestSeq };
    return { facts, aggregate: folded, seq: this.#newestSeq, ...this.#taskStart };
  }

  /**
   * An event that fits no record, or that JSON cannot hold, fails its task, visibly: a retry would end the same way. A task whose
   * first record does not fit never starts. Servers reject such a message; one that another writer appended must not block the
   * shard.
   */
  async #reject(facts: readonly Fact[], reason: string): Promise<StoredStep | undefined> {
    const { context, ledger } = this.#options;
    const aggregate = this.#aggregate;
    if (aggregate === undefined) {
      ledger.reject('too large', facts.length);
      return undefined;
    }
    const failure = failTask(aggregate, reason, Math.max(aggregate.at, Math.round(context.wallNow()))).facts;
    return this.#appendFacts({ facts: failure, aggregate: failure.reduce<TaskAggregate>(evolve, aggregate) });
  }

  async #appendRecord(record: FactRecord): Promise<number> {
    const { context, taskId, trace } = this.#options;
    const options = { expected: this.#newestSeq, id: context.appendId(taskId), trace: trace() };
    const startedMs = context.now();
    const takeover = this.#takeover;
    const { seq } = await context.facts.append(takeover === undefined ? record : { ...record, takeover }, options);
    this.#takeover = undefined;
    context.onAppend(context.now() - startedMs);
    this.#newestSeq = seq;
    return seq;
  }
}

/** A run of text with the time that it waited for the append before this one. */
function withWait({ command, queuedMs }: QueuedCommand, nowMs: number): Command {
  if (command.kind !== 'run') return command;
  return { ...command, chunk: { ...command.chunk, waitMs: Math.max(0, Math.round(nowMs - queuedMs)) } };
}

/** Everything of the producer's run up to ordinal `n`, text aside, is folded. */
function withMark(aggregate: TaskAggregate, { from, n }: NonNullable<QueuedCommand['mark']>): TaskAggregate {
  const { id, turn, item, attempt } = from;
  if (turn !== aggregate.turn || !isKnownProducer(aggregate, id)) return aggregate;
  const known = aggregate.producers[id];
  const lastN = known?.attempt === attempt ? known.lastN : 0;
  const producer = { ...(item !== undefined && { item }), attempt, n, ...(lastN !== undefined && { lastN }) };
  return { ...aggregate, producers: { ...aggregate.producers, [id]: producer } };
}

/** Whether the facts are the failure of `#reject`: then even that cannot be stored. */
function isFailureOfRelay(facts: readonly Fact[]): boolean {
  const reasons: unknown[] = [TOO_LARGE, NOT_ENCODABLE];
  return facts.some(fact => fact.kind === 'status.changed' && reasons.includes(fact.event.statusUpdate.metadata?.reason));
}

/**
 * Whether an error comes from the task itself: code met a value that it cannot hold, or the value fits no record. Every other one
 * is a fault of the log, or another relay owns the task.
 */
export function isTaskFault(error: unknown): boolean {
  return error instanceof RecordTooLarge || error instanceof TypeError || error instanceof RangeError;
}
