import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal } from '@hopline/a2a';
import {
  HistoryLost,
  type InputLog,
  LaterVersion,
  type Semaphore,
  type ShardProgress,
  type StoredFacts,
  type StoredInput,
  type Unread,
} from '@hopline/log';
import type { CreationBudget } from './creation-budget.ts';
import type { PipelineContext } from './pipeline-context.ts';
import type { RejectedRecord } from './rejected-records.ts';
import { StoredRecords } from './stored-records.ts';
import { TaskPipeline } from './task-pipeline.ts';
import type { UnknownTask, UnknownTasks } from './unknown-tasks.ts';
import type { WaitingInputs } from './waiting-inputs.ts';

/**
 * Limit of the inputs that wait in a relay, either for an append (in UTF-16 units) or for their task to be read (in bytes). Above it,
 * shards that hold more than an equal share pause reading until the log catches up, so that a shard whose log does not answer never stops
 * the others.
 */
export const RELAY_WAITING_UNITS_MAX = 16 * 1024 * 1024;
/** A task that has had no input for this long is evicted from memory. Its next input loads it from the log. */
export const IDLE_MS = 30_000;
/**
 * The same time for a task that has ended, or that was never there. It is shorter, because few inputs follow the end, and every checkpoint visits each task in
 * memory.
 */
export const ENDED_IDLE_MS = 2_000;
export const SWEEP_MS = 5_000;
const CATCH_UP_POLL_MS = 5;
/** Number of records, or of their bytes, between two checks of the limit, because a check costs one step per task. */
const RECORDS_PER_CHECK = 128;
const BYTES_PER_CHECK = 256 * 1024;
/** Number of records of a task after which the folded ones are dropped. */
const RECORDS_PER_FORGET = 64;

export type ShardContext = Omit<PipelineContext, 'leapTo' | 'onAppended'> & {
  inputs: InputLog;
  /** Shared by the shards of the relay. */
  waiting: WaitingInputs;
  /** `leadership` of the stream of facts to which a shard writes. */
  leadershipOf: (shard: number) => Promise<string | undefined>;
  /** Called when the log has lost records of the shard and their inputs are folded again. */
  onRefold: (shard: number) => void;
  /** Called for a task that is folded again, with its newest record, if the index shows a later one. */
  onLostNewest: (newest: StoredFacts) => void;
  /**
   * Shared by the shards of the relay. A starting shard checks its records in one of these slots, because many shards at once would make
   * thousands of requests.
   */
  begins: Semaphore;
  /** These are shared by the shards of the relay. `agentLoads`: open tasks that agents name and that are being loaded. */
  unknownTasks: UnknownTasks;
  creations: CreationBudget;
  agentLoads: Semaphore;
  /** Whether the task may be open. Only a relay that has read all open tasks of the shard knows that it is not. */
  mayBeOpen: (taskId: string, shard: number) => boolean;
};

/** An agent has used up what it may cost others. */
type AgentFault = 'too many tasks' | 'too many unknown tasks';

/** A task in memory. Inputs wait while its newest record is being read. */
type LoadedTask = {
  pipeline: TaskPipeline | undefined;
  waiting: StoredInput[];
  waitingBytes: number;
  /**
   * Raw sequences that were not yet folded at the last check, oldest first, each with the time at which it was stored in epoch
   * milliseconds.
   */
  unfolded: { readonly seqs: number[]; readonly storedAt: number[] };
  /** While the task waits for its look (UnknownTasks). */
  unknown: UnknownTask | undefined;
  /** Records read since the last check. */
  sinceForgotten: number;
  /**
   * Set if a later version wrote the task's facts. A relay of that version continues with this input, and this relay folds no further ones.
   */
  blockedAt?: number;
};

/**
 * All tasks of one shard: reads the shard's inputs in order and dispatches each to its task. The checkpoint is valid only while the log
 * keeps the stored records (StoredRecords). If the log has lost one, all inputs are read again. Inputs that a task has already folded are
 * recognized, and lost facts are made again.
 */
export class Shard {
  readonly index: number;
  readonly #context: ShardContext;
  readonly #tasks = new Map<string, LoadedTask>();
  readonly #stop = new AbortController();
  #checkpoint: number;
  #lastReadSeq: number;
  readonly #stored: StoredRecords;
  /** Number of records read since this owner took the shard, as a measure of its load. */
  #recordsRead = 0;
  readonly #uncount: () => void;
  #reading: Promise<void> | undefined;
  #sweepTimer: NodeJS.Timeout | undefined;
  #failed = false;

  constructor(index: number, progress: ShardProgress, context: ShardContext) {
    this.index = index;
    this.#stored = new StoredRecords(progress, {
      facts: context.facts,
      leadership: () => context.leadershipOf(index),
      lastInput: () => this.#lastInput(),
      hasOwnerDied: context.owned.cause === 'lost',
      now: context.now,
      onLost: () => {
        [this.#checkpoint, this.#lastReadSeq] = [0, 0];
        context.onRefold(index);
      },
    });
    this.#context = context;
    this.#uncount = context.waiting.add(() => this.#waitingUnits());
    this.#checkpoint = progress.checkpoint;
    this.#lastReadSeq = progress.checkpoint;
  }

  start(): void {
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#reading = this.#begin().catch(error => this.#fail(error));
  }

  /** Stops reading and appending. Inputs that were not folded stay in the input log for the next owner. */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#sweepTimer);
    for (const { pipeline } of this.#tasks.values()) pipeline?.stop();
    await this.#reading;
    this.#uncount();
  }

  get progress(): ShardProgress {
    const { checkpoint } = this;
    return { checkpoint, ...this.#stored.progress(checkpoint, this.#stop.signal.aborted && this.#hasUnansweredAppend) };
  }

  /** Raw sequence up to which every input of the shard is folded, including side effects. */
  get checkpoint(): number {
    if (this.#failed) return this.#checkpoint;
    let folded = this.#lastReadSeq;
    for (const { pipeline, waiting, blockedAt } of this.#tasks.values()) {
      if (blockedAt !== undefined) folded = Math.min(folded, blockedAt - 1);
      if (waiting[0] !== undefined) folded = Math.min(folded, waiting[0].seq - 1);
      if (pipeline !== undefined && !pipeline.isIdle) folded = Math.min(folded, pipeline.checkpoint);
    }
    this.#checkpoint = Math.max(this.#checkpoint, folded);
    return this.#checkpoint;
  }

  get #hasUnansweredAppend(): boolean {
    return [...this.#tasks.values()].some(({ pipeline }) => pipeline?.hasUnansweredAppend === true);
  }

  /**
   * Number of the shard's records that are stored but not folded: those that were not yet read at the newest delivery, and those waiting
   * here.
   */
  get lag(): number {
    let lag = this.#unread?.records ?? 0;
    for (const task of this.#tasks.values()) lag += unfoldedOf(task).seqs.length;
    return lag;
  }

  /**
   * When the oldest unfolded input was stored, in epoch milliseconds; undefined if all inputs are folded. For an input that this process
   * has not read yet, the time of the newest input that it has read is used.
   */
  get oldestInputAt(): number | undefined {
    let oldestAt: number | undefined;
    for (const task of this.#tasks.values()) {
      const [storedAt] = unfoldedOf(task).storedAt;
      if (storedAt !== undefined && (oldestAt === undefined || storedAt < oldestAt)) oldestAt = storedAt;
    }
    return oldestAt ?? this.#unread?.storedAt;
  }

  get #unread(): Unread | undefined {
    return this.#context.inputs.unread(this.index, this.#lastReadSeq);
  }

  /** Whether inputs, appends or side effects of the task are in progress here. */
  isBusy(taskId: string): boolean {
    const task = this.#tasks.get(taskId);
    return task !== undefined && task.pipeline?.isBusy !== false;
  }

  get recordsRead(): number {
    return this.#recordsRead;
  }

  get taskCount(): number {
    return this.#tasks.size;
  }

  async #begin(): Promise<void> {
    const { owned, begins } = this.#context;
    // A shard without an earlier owner has no records to check.
    const release = owned.cause === 'fresh' ? undefined : await begins.acquire(this.#stop.signal);
    try {
      if (!this.#stop.signal.aborted) await this.#stored.begin();
    } finally {
      release?.();
    }
    if (!this.#stop.signal.aborted) await this.#readInputs();
  }

  async #lastInput(): Promise<number> {
    return (await this.#context.inputs.extent()).ofShard(this.index).lastSeq;
  }

  async #readInputs(): Promise<void> {
    let [records, bytes] = [0, 0];
    const { inputs } = this.#context;
    const onRejected = (rejected: RejectedRecord) => this.#context.onRejectedRecord(rejected);
    for await (const input of inputs.readShard(this.index, this.#checkpoint + 1, this.#stop.signal, onRejected)) {
      const { seq, taskId, trace } = input;
      if (hasMalformed(input)) onRejected({ seq, taskId, fault: 'malformed input', ...(trace && { trace }) });
      this.#dispatch(input);
      this.#lastReadSeq = seq;
      this.#recordsRead += 1;
      records += 1;
      bytes += input.bytes;
      if (records < RECORDS_PER_CHECK && bytes < BYTES_PER_CHECK) continue;
      [records, bytes] = [0, 0];
      while (this.#mustWait() && !this.#stop.signal.aborted) await sleep(CATCH_UP_POLL_MS);
    }
  }

  #dispatch(input: StoredInput): void {
    const task = this.#tasks.get(input.taskId);
    // A blocked task folds nothing, so further inputs of it are not kept.
    if (task?.blockedAt !== undefined) return;
    if (task?.unknown !== undefined && isOfAgent(input) && !task.unknown.add(input.bytes)) {
      this.#reject(input, 'too many unknown tasks');
      return;
    }
    if (task !== undefined) noteRead(task, input);
    if (task?.pipeline !== undefined) {
      task.pipeline.accept(input);
    } else if (task !== undefined) {
      task.waiting.push(input);
      task.waitingBytes += input.bytes;
    } else {
      const loading: LoadedTask = {
        pipeline: undefined,
        waiting: [input],
        waitingBytes: input.bytes,
        unfolded: { seqs: [input.seq], storedAt: [input.storedAt] },
        unknown: undefined,
        sinceForgotten: 0,
      };
      this.#tasks.set(input.taskId, loading);
      const fault = this.#beginTask(input, loading);
      if (fault === undefined) return;
      this.#tasks.delete(input.taskId);
      this.#reject(input, fault);
    }
  }

  #reject({ seq, taskId, writer, trace }: StoredInput, fault: AgentFault): void {
    this.#context.onRejectedRecord({ seq, taskId, fault, writer, ...(trace && { trace }) });
  }

  /** Begins with a task that was not in memory. Returns a fault if it must not. */
  #beginTask(input: StoredInput, task: LoadedTask): AgentFault | undefined {
    const { taskId, writer, storedAt } = input;
    const { creations, mayBeOpen } = this.#context;
    const isOwn = isOfAgent(input) && mayCreateTask(input);
    if (isOwn && !creations.admit(writer, storedAt)) return 'too many tasks';
    if (createsTask(input)) this.#continue(taskId, task, 'new');
    else if (!isOfAgent(input) || isOwn) this.#load(taskId, task).catch(error => this.#fail(error));
    else if (mayBeOpen(taskId, this.index)) this.#loadOpen(input, task).catch(error => this.#fail(error));
    else if (!this.#lookFor(input, task)) return 'too many unknown tasks';
    return undefined;
  }

  /** Loads a task that an agent names and that may be open: any task, until the open tasks of the shard have been read. */
  async #loadOpen(input: StoredInput, task: LoadedTask): Promise<void> {
    const { agentLoads, mayBeOpen } = this.#context;
    const release = await agentLoads.acquire(this.#stop.signal);
    if (release === undefined) return;
    try {
      if (mayBeOpen(input.taskId, this.index)) return await this.#load(input.taskId, task);
    } finally {
      release();
    }
    if (this.#lookFor(input, task)) return;
    if (!task.waiting.every(isOfAgent)) return this.#load(input.taskId, task);
    this.#tasks.delete(input.taskId);
    for (const waiting of task.waiting) this.#reject(waiting, 'too many unknown tasks');
  }

  /** False if too many tasks of the writer wait for their look. */
  #lookFor({ taskId, writer }: StoredInput, task: LoadedTask): boolean {
    const look = async () => {
      if (!this.#stop.signal.aborted) await this.#load(taskId, task).catch(error => this.#fail(error));
    };
    task.unknown = this.#context.unknownTasks.admit(writer, task.waitingBytes, look);
    return task.unknown !== undefined;
  }

  async #load(taskId: string, task: LoadedTask): Promise<void> {
    const { facts, indexedSeq } = this.#context;
    const reading = Promise.all([facts.last(taskId), indexedSeq(taskId)]);
    const [found, seq] = await reading.catch(error => this.#block(taskId, task, error));
    // The index is written after the facts, so another relay may have stored some facts between the two reads.
    const isBehind = (seq ?? 0) > (found?.seq ?? 0);
    const newest = isBehind ? await facts.last(taskId) : found;
    if (seq !== undefined && seq > (newest?.seq ?? 0)) this.#stored.addIndexed(taskId, seq);
    const isNew = newest === undefined && (seq === undefined || (await this.#isLost(task, seq)));
    // The state that was read may be older than the facts that this shard has stored. The next input's ordinals would then show a gap.
    await this.#stored.check();
    if (this.#stop.signal.aborted || task.blockedAt !== undefined) return;
    if (newest !== undefined && (seq ?? 0) > newest.seq && this.#stored.refoldTo !== undefined)
      this.#context.onLostNewest(newest);
    this.#continue(taskId, task, newest ?? (isNew ? 'new' : 'expired'));
  }

  /** Whether the log has lost all facts of a task whose index entry names `seq`, although retention has not yet reached that record. */
  async #isLost(task: LoadedTask, seq: number): Promise<boolean> {
    if (task.waiting[0] === undefined || task.waiting[0].seq > (this.#stored.refoldTo ?? 0)) return false;
    return seq >= (await this.#context.facts.extent()).ofShard(this.index).firstSeq;
  }

  #continue(taskId: string, task: LoadedTask, stored: StoredFacts | 'new' | 'expired'): void {
    const pipeline = new TaskPipeline(taskId, stored, {
      ...this.#context,
      leapTo: this.#stored.leapTo,
      onAppended: record => this.#stored.add(record),
      onFailure: error => this.#fail(error),
    });
    task.pipeline = pipeline;
    task.unknown = undefined;
    for (const input of task.waiting) pipeline.accept(input);
    task.waiting = [];
    task.waitingBytes = 0;
  }

  /** Holds the checkpoint before the task's first input, so that a relay of the later version folds it. Other tasks continue. */
  #block(taskId: string, task: LoadedTask, error: unknown): [undefined, undefined] {
    if (!(error instanceof LaterVersion)) throw error;
    const { seq, trace } = task.waiting[0]!;
    task.blockedAt = seq;
    task.waiting = [];
    task.waitingBytes = 0;
    this.#context.onRejectedRecord({ seq, taskId, fault: 'unknown version', ...(trace && { trace }) });
    return [undefined, undefined];
  }

  #mustWait(): boolean {
    const { waiting, layouts } = this.#context;
    return this.#waitingUnits() > RELAY_WAITING_UNITS_MAX / layouts().shards && waiting.units > RELAY_WAITING_UNITS_MAX;
  }

  #waitingUnits(): number {
    let units = 0;
    for (const { pipeline, waitingBytes } of this.#tasks.values()) units += pipeline?.queuedUnits ?? waitingBytes;
    return units;
  }

  #sweep(): void {
    this.#evictIdle();
    this.#stored.addQuiet(taskId => this.#tasks.get(taskId)?.pipeline?.lastInputAt);
    if (!this.#stored.isCheckDue()) return;
    // Without an answer the next sweep checks again.
    this.#stored.check().catch(error => error instanceof HistoryLost && this.#fail(error));
  }

  #evictIdle(): void {
    const now = this.#context.now();
    for (const [taskId, { pipeline }] of this.#tasks) {
      if (pipeline?.isIdle !== true) continue;
      const { aggregate, lastInputAt } = pipeline;
      const isEnded = aggregate === undefined || isTerminal(aggregate.state);
      if (now - lastInputAt < (isEnded ? ENDED_IDLE_MS : IDLE_MS)) continue;
      pipeline.stop();
      this.#tasks.delete(taskId);
      this.#stored.release(taskId);
    }
  }

  #fail(error: unknown): void {
    if (this.#failed || this.#stop.signal.aborted) return;
    this.#checkpoint = this.checkpoint;
    this.#failed = true;
    this.#stop.abort();
    this.#context.onFailure(error);
  }
}

/** Code of teams may hold the login of an agent; all other writers are services of Hopline. */
const isOfAgent = ({ writer }: StoredInput): boolean => writer.startsWith('agent.');

function hasMalformed({ record }: StoredInput): boolean {
  return 'inputs' in record && record.inputs.some(({ kind }) => kind === 'malformed');
}

function noteRead(task: LoadedTask, { seq, storedAt }: StoredInput): void {
  const { unfolded } = task;
  unfolded.seqs.push(seq);
  unfolded.storedAt.push(storedAt);
  task.sinceForgotten += 1;
  if (task.sinceForgotten >= Math.max(RECORDS_PER_FORGET, unfolded.seqs.length / 2)) unfoldedOf(task);
}

/** Drops folded records, so that the lists contain only waiting ones. */
function unfoldedOf(task: LoadedTask): LoadedTask['unfolded'] {
  const { pipeline, unfolded } = task;
  const { seqs, storedAt } = unfolded;
  task.sinceForgotten = 0;
  if (pipeline !== undefined && seqs.length > 0) {
    const { foldedSeq } = pipeline;
    const waiting = seqs.findIndex(seq => seq > foldedSeq);
    const folded = waiting < 0 ? seqs.length : waiting;
    seqs.splice(0, folded);
    storedAt.splice(0, folded);
  }
  return unfolded;
}

/**
 * Whether the task cannot have facts yet, which saves a read of the log: its id was made for this message, and the message was stored after
 * this relay took the shard. If another relay has folded it anyway, the append conflicts and the shard restarts.
 */
function createsTask({ record, isLive }: StoredInput): boolean {
  return isLive === true && record.from === 'client' && record.input.kind === 'message' && record.input.creates === true;
}

function mayCreateTask({ record }: StoredInput): boolean {
  return record.from === 'client' && record.input.kind === 'message' && record.input.continues !== true;
}
