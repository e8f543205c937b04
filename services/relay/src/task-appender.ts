import { isTerminal } from '@hopline/a2a';
import {
  type CopyForwardInput,
  type Fact,
  type FactRecord,
  isVisible,
  type Takeover,
  type TaskAggregate,
  type TraceCarrier,
} from '@hopline/events';
import {
  type BatchDecision,
  decideBatch,
  type InputLedger,
  NOT_ENCODABLE,
  type QueuedCommand,
  TASK_TOO_LARGE,
  type TaskInputs,
  TOO_LARGE,
} from '@hopline/fold';
import { LogConflict, RecordTooLarge, type StoredFacts, startSeqOf } from '@hopline/log';
import { evolve, failTask, onlyContinuesText } from '@hopline/task';
import type { PartyLabels } from '@hopline/telemetry';
import { copyForward, type TaskStart } from './copy-forward.ts';
import type { PipelineContext, StoredChange } from './pipeline-context.ts';

/**
 * Minimum leap of the generation, for a task that is ahead of this clock or that has leaped in the last minutes. It is more than the number
 * of events that a task gets in the seconds that a log may lose.
 */
const LEAP_GENERATIONS_MIN = 1_000_000;
/** Bytes of records of one task by default: an eighth of the default size of `A2A_LOG`. */
export const TASK_BYTES_MAX = 512 * 1024 * 1024;

type TaskAppenderOptions = {
  taskId: string;
  newest: StoredFacts | undefined;
  /** Set when another owner of the shard stored `newest`: the next record contains it. */
  takeover: Takeover | undefined;
  ledger: InputLedger;
  context: Pick<
    PipelineContext,
    | 'facts'
    | 'now'
    | 'wallNow'
    | 'appendId'
    | 'onAppended'
    | 'countStored'
    | 'metrics'
    | 'taskBytesMax'
    | 'leapTo'
    | 'copyPartUnitsMax'
  >;
  /** Determines which inputs each append folds. */
  inputs: Pick<TaskInputs, 'folded'>;
  trace: () => TraceCarrier;
};

/**
 * Decides commands and appends their facts. Each append expects the sequence of the previous record, so it fails with LogConflict if the
 * relay has lost the task. The caller makes one call at a time.
 */
export class TaskAppender {
  readonly #options: TaskAppenderOptions;
  #aggregate: TaskAggregate | undefined;
  #newestSeq: number;
  /** Bytes of the task's records as far as this relay knows them. They lack the newest record of another relay. */
  #storedBytes: number;
  #taskStart: TaskStart | undefined;
  #takeover: Takeover | undefined;
  /** The log may have lost records of the task, so the next event gets a generation that no client knows. */
  #leap: 'none' | 'due' | 'done' = 'none';
  /** Labels of the task's owner, looked up once for a turn. */
  #party: PartyLabels | undefined;
  #isStopped = false;
  /** An append has begun and its outcome is not known. */
  #isUnanswered = false;

  constructor(options: TaskAppenderOptions) {
    const { newest, takeover } = options;
    this.#options = options;
    this.#aggregate = newest?.record.aggregate;
    this.#newestSeq = newest?.seq ?? 0;
    this.#storedBytes = newest?.record.aggregate.storedBytes ?? 0;
    this.#taskStart = newest && { startSeq: startSeqOf(newest), startStoredAt: newest.record.startStoredAt };
    this.#takeover = takeover;
  }

  /** The task after its newest record. */
  get aggregate(): TaskAggregate | undefined {
    return this.#aggregate;
  }

  get isUnanswered(): boolean {
    return this.#isUnanswered;
  }

  /** Ends a copy-forward before its next part. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Appends the facts of a batch as one record. Resolves with undefined if the batch made no fact, or if no record can hold its first fact.
   */
  async append(batch: readonly QueuedCommand[]): Promise<StoredChange | undefined> {
    if (this.#leap === 'none' && this.#mayReplaceLost(batch)) this.#leap = 'due';
    const decided = this.#decide(batch);
    const isOver = this.#storedBytes >= this.#options.context.taskBytesMax;
    // A task that ends anyway need not fail.
    const goesOn = decided.facts.length > 0 && decided.aggregate !== undefined && !isTerminal(decided.aggregate.state);
    return isOver && goesOn ? this.#reject(decided.facts, TASK_TOO_LARGE) : this.#appendFacts(decided);
  }

  /**
   * Copies the facts of an open task forward. Resolves with undefined when the task has ended, or this relay has stopped. If the start
   * differs from that in the command, the previous owner has already copied the facts. The step is returned nevertheless: that relay may
   * have died before it wrote the task index, and without the entry the next copy-forward would never become due.
   */
  async copyForward({ startStoredAt }: CopyForwardInput): Promise<StoredChange | undefined> {
    const { context, ledger } = this.#options;
    const [aggregate, taskStart] = [this.#aggregate, this.#taskStart];
    if (aggregate === undefined || taskStart === undefined || isTerminal(aggregate.state)) return undefined;
    if (taskStart.startStoredAt === startStoredAt) {
      const newest: StoredFacts = { seq: this.#newestSeq, record: { v: 1, facts: [], aggregate, ...taskStart } };
      const nowMs = Math.round(context.wallNow());
      const append = async (record: FactRecord) => {
        if (this.#isStopped) return undefined;
        await this.#appendRecord(record);
        return this.#newestSeq;
      };
      const copied = await copyForward(context.facts, newest, nowMs, append, context.copyPartUnitsMax);
      if (copied === 'stopped') return undefined;
      if (copied === 'tooLarge') ledger.reject('too large', 1);
      this.#taskStart = copied === 'tooLarge' ? { ...taskStart, startStoredAt: nowMs } : copied;
    }
    return this.replay();
  }

  /** The step of an input that was folded before; undefined if there is no task. */
  replay(replay: NonNullable<StoredChange['replay']> = {}): StoredChange | undefined {
    const [aggregate, storedBytes] = [this.#aggregate, this.#storedBytes];
    return aggregate && { facts: [], aggregate, seq: this.#newestSeq, ...this.#taskStart!, storedBytes, replay };
  }

  #mayReplaceLost(batch: readonly QueuedCommand[]): boolean {
    const { leapTo = 0 } = this.#options.context;
    const foldedSeq = this.#aggregate?.foldedSeq;
    return foldedSeq === undefined ? batch.some(({ firstSeq }) => firstSeq <= leapTo) : foldedSeq <= leapTo;
  }

  #decide(batch: readonly QueuedCommand[]): BatchDecision {
    const { context, ledger } = this.#options;
    const onDecided = ledger.settleCommand.bind(ledger);
    return decideBatch(this.#aggregate, batch, { now: context.now, wallNow: context.wallNow, onDecided });
  }

  async #appendFacts(decided: BatchDecision): Promise<StoredChange | undefined> {
    if (decided.facts.length === 0 || decided.aggregate === undefined) {
      this.#aggregate = decided.aggregate;
      return undefined;
    }
    const { facts, aggregate } = this.#afterLoss(decided.facts, decided.aggregate);
    const folded = { ...this.#options.inputs.folded(aggregate), storedBytes: this.#storedBytes };
    const taskStart = this.#taskStart ?? { startSeq: 0, startStoredAt: folded.at };
    try {
      this.#storedBytes += await this.#appendRecord({ v: 1, facts, aggregate: folded, ...taskStart });
    } catch (error) {
      if (!isTaskFault(error) || isFailureOfRelay(facts)) throw error;
      return this.#reject(facts, error instanceof RecordTooLarge ? TOO_LARGE : NOT_ENCODABLE);
    }
    this.#aggregate = folded;
    if (this.#leap === 'due' && facts !== decided.facts) this.#leap = 'done';
    this.#taskStart ??= { ...taskStart, startSeq: this.#newestSeq };
    const [seq, storedBytes, party] = [this.#newestSeq, this.#storedBytes, this.#party];
    return { facts, aggregate: folded, seq, ...this.#taskStart, storedBytes, ...(party && { party }) };
  }

  /**
   * If the log may have lost records, the generations continue at the current time, which is above any lost generation. A viewer, webhook
   * or cursor that has received lost events then finds a gap, never an event that looks like the next one. If it has received the event
   * that `lostAfter` names, it has missed nothing. The first event of a task needs no leap, because it is the client's message and will be
   * the same again.
   */
  #afterLoss(facts: Fact[], aggregate: TaskAggregate): { facts: Fact[]; aggregate: TaskAggregate } {
    const lostAfter = this.#aggregate?.generation ?? 1;
    if (this.#leap !== 'due' || aggregate.generation <= lostAfter) return { facts, aggregate };
    const nowMs = Math.round(this.#options.context.wallNow());
    // A second loss may remove the leap itself. The next leap from the same record goes further, by the time that has passed in between.
    const sinceMs = Math.max(0, nowMs - (this.#aggregate?.at ?? nowMs));
    const skipped = Math.max(nowMs - lostAfter - 1, LEAP_GENERATIONS_MIN + sinceMs);
    const leap = (fact: Fact): Fact => {
      if (!isVisible(fact) || fact.generation <= lostAfter) return fact;
      const isFirst = fact.generation === lostAfter + 1;
      return { ...fact, generation: fact.generation + skipped, ...(isFirst && { lostAfter }) };
    };
    return { facts: facts.map(leap), aggregate: { ...aggregate, generation: aggregate.generation + skipped } };
  }

  /**
   * Makes the task fail visibly if an event does not fit into a record, exceeds the limit of the task, or cannot be encoded as JSON,
   * because a retry would end in the same way. A task whose first record does not fit never starts. Servers reject such a message, and a
   * message that another writer appended must not block the shard.
   */
  async #reject(facts: readonly Fact[], reason: string): Promise<StoredChange | undefined> {
    const { context, ledger } = this.#options;
    const aggregate = this.#aggregate;
    if (aggregate === undefined) {
      ledger.reject('too large', facts.length);
      return undefined;
    }
    const failure = failTask(aggregate, reason, Math.max(aggregate.at, Math.round(context.wallNow()))).facts;
    return this.#appendFacts({ facts: failure, aggregate: failure.reduce<TaskAggregate>(evolve, aggregate) });
  }

  /** Resolves with the bytes of the record. */
  async #appendRecord(record: FactRecord): Promise<number> {
    const { context, taskId, trace } = this.#options;
    const continuesText = onlyContinuesText(this.#aggregate, record.facts) && { continuesText: true };
    const carrier = trace();
    const options = { expected: this.#newestSeq, id: context.appendId(taskId), trace: carrier, ...continuesText };
    const startedMs = context.now();
    const takeover = this.#takeover;
    this.#isUnanswered = true;
    const append = context.facts.append(takeover === undefined ? record : { ...record, takeover }, options);
    const { seq, bytes } = await append.catch(error => {
      if (isTaskFault(error) || error instanceof LogConflict) this.#isUnanswered = false;
      throw error;
    });
    this.#isUnanswered = false;
    this.#takeover = undefined;
    const { metrics } = context;
    if (this.#party === undefined || record.facts.some(beginsTurn)) this.#party = metrics.parties.of(record.aggregate.owner);
    context.onAppended({ seq, id: options.id });
    metrics.appendDuration.recordMs(context.now() - startedMs, {}, carrier);
    metrics.tenantStored.add(bytes, this.#party);
    const { owner } = record.aggregate;
    if (owner !== undefined) context.countStored(taskId, owner, { seq, bytes });
    this.#newestSeq = seq;
    return bytes;
  }
}

/** Whether a message of the client began a turn with this fact. */
export function beginsTurn({ kind }: Fact): boolean {
  return kind === 'task.created' || kind === 'message.received';
}

/** Whether the facts are the failure made by `#reject`, so that not even this failure can be stored. */
function isFailureOfRelay(facts: readonly Fact[]): boolean {
  const reasons: unknown[] = [TOO_LARGE, TASK_TOO_LARGE, NOT_ENCODABLE];
  return facts.some(fact => fact.kind === 'status.changed' && reasons.includes(fact.event.statusUpdate.metadata?.reason));
}

/**
 * Whether an error comes from the task itself: the code cannot handle a value, or the value does not fit into a record. Any other error is
 * a fault of the log, or means that another relay owns the task.
 */
export function isTaskFault(error: unknown): boolean {
  return error instanceof RecordTooLarge || error instanceof TypeError || error instanceof RangeError;
}
