import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal } from '@hopline/a2a';
import {
  HistoryLost,
  type InputLog,
  LaterVersion,
  type RecordMark,
  type RejectedInput,
  type ShardProgress,
  type StoredFacts,
  type StoredInput,
  taskOfFactsId,
  type Unread,
} from '@hopline/log';
import type { PipelineContext } from './pipeline-context.ts';
import { ReadTimes } from './read-times.ts';
import { TaskPipeline } from './task-pipeline.ts';

/**
 * Inputs of one shard that wait for an append (UTF-16 units) or for their task to be read (bytes). Above the limit the shard pauses
 * reading until the log catches up.
 */
export const SHARD_WAITING_UNITS_MAX = 16 * 1024 * 1024;
/** A task without input for this long is evicted from memory; its next input loads it from the log. */
export const IDLE_MS = 30_000;
/** The same for a task that has ended, because few inputs follow its end and each task in memory is a step of every checkpoint. */
export const ENDED_IDLE_MS = 2_000;
export const SWEEP_MS = 5_000;
/** A task without input for this long is quiet: no append will soon prove that the log has its newest record. */
const QUIET_MS = 1_000;
/**
 * Time after which a record that was found again and again is looked for only every LOOK_OLD_MS. A crash of NATS loses records that are younger than its
 * sync interval (2 minutes by default); only a restored backup lacks older ones.
 */
export const LOOK_OFTEN_MS = 10 * 60_000;
export const LOOK_OLD_MS = 60_000;
const CATCH_UP_POLL_MS = 5;
/** Records, or bytes of records, between two checks of the bound, because a check costs one step per task. */
const RECORDS_PER_CHECK = 128;
const BYTES_PER_CHECK = 1024 * 1024;
/** Records of a task after which the folded ones are forgotten. */
const RECORDS_PER_LOOK = 64;
/** Records checked concurrently. */
const LOOKS_AT_ONCE_MAX = 16;

export type ShardContext = Omit<PipelineContext, 'leapTo'> & {
  inputs: InputLog;
  /** `leadership` of the stream of facts that a shard writes. */
  leadershipOf: (shard: number) => Promise<string | undefined>;
  /** Called when the log has lost records of the shard and their inputs are folded again. */
  onRefold: (shard: number) => void;
};

/** A task in memory. Inputs wait while its newest record is being read. */
type LoadedTask = {
  pipeline: TaskPipeline | undefined;
  waiting: StoredInput[];
  waitingBytes: number;
  /** Raw sequences that were not folded at the last check, oldest first. */
  unfolded: number[];
  /** Records read since the last check. */
  sinceLook: number;
  /** The newest record of the task that this shard stored. The task's next append proves that the log has it. */
  stored?: RecordMark;
  /** `stored` when it was added to the records that are checked, so that it is added once. */
  listed?: RecordMark;
  /** Set if a later version wrote the task's facts: a relay of that version continues at this input, and this relay folds none. */
  blockedAt?: number;
};

/**
 * All tasks of one shard: reads the shard's inputs in order and dispatches each to its task.
 *
 * The checkpoint is valid only while the log keeps the stored records. So the shard remembers its newest record, and checks that the log has it at
 * start, before it continues a task from the log, and from time to time. A loss between two checks may spare the record of the first one, and another
 * task's later record then hides it at the second. So the newest record of each task is checked once the task is quiet, and a later loss of it has
 * taken the record of the last check as well. If the log has lost a record, all inputs are read again: those that a task has folded are recognized, and
 * lost facts are made again.
 *
 * No mark names the last records of an owner that died. Their loss is ruled out only while the stream of facts has had one leader. Otherwise tasks that
 * such an owner may have continued go on at generations that no client can have received (ADR 144).
 */
export class Shard {
  readonly index: number;
  readonly #context: ShardContext;
  readonly #tasks = new Map<string, LoadedTask>();
  readonly #stop = new AbortController();
  #checkpoint: number;
  #lastReadSeq: number;
  #newest: RecordMark | undefined;
  /** `#newest` at the last check that found it. */
  #found: RecordMark | undefined;
  #refoldTo: number | undefined;
  /**
   * Names the leader that the stream of facts has had since this owner took the shard or, before this owner has begun, since the previous one took
   * it.
   */
  #leadership: string | undefined;
  /** An earlier owner may have stored records that no mark names, and this owner has not yet checked whether the log has lost them. */
  #isInDoubt: boolean;
  #leapTo: number | undefined;
  /** Records that no append will confirm, so they must be checked. */
  #unproven: RecordMark[] = [];
  /** When this process stored the newest record or, if it stored none, took the shard. Monotonic milliseconds, like the time of the last look. */
  #storedAtMs: number;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  /** The running check of the newest record, and the next one. */
  #looking: Promise<void> | undefined;
  #nextLook: Promise<void> | undefined;
  readonly #readTimes = new ReadTimes();
  /** Records read since this owner took the shard, for the load of the shard. */
  #recordsRead = 0;
  #reading: Promise<void> | undefined;
  #sweepTimer: NodeJS.Timeout | undefined;
  #failed = false;

  constructor(
    index: number,
    { checkpoint, newest, refoldTo, leadership, isInDoubt, leapTo = refoldTo, unproven = [] }: ShardProgress,
    context: ShardContext,
  ) {
    this.index = index;
    this.#context = {
      ...context,
      onAppend: (ms, stored, of) => {
        this.#noteStored(stored);
        context.onAppend(ms, stored, of);
      },
    };
    this.#checkpoint = checkpoint;
    this.#lastReadSeq = checkpoint;
    this.#newest = newest;
    this.#refoldTo = refoldTo;
    this.#leadership = leadership;
    this.#isInDoubt = isInDoubt === true || context.owned.cause === 'lost';
    this.#leapTo = leapTo;
    this.#unproven = [...unproven];
    this.#storedAtMs = context.now();
  }

  start(): void {
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#reading = this.#begin().catch(error => this.#fail(error));
  }

  /** Stops reading and appending. Inputs that were not folded are left in the input log for the next owner. */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#sweepTimer);
    for (const { pipeline } of this.#tasks.values()) pipeline?.stop();
    await this.#reading;
  }

  get progress(): ShardProgress {
    const { checkpoint } = this;
    const refoldTo = this.#refoldTo ?? 0;
    const isInDoubt = this.#isInDoubt || (this.#stop.signal.aborted && this.#hasUnansweredAppend);
    const unproven = new Set(this.#unproven);
    // A check may have found that this record is lost, although the newest one is not.
    if (this.#found !== undefined) unproven.add(this.#found);
    for (const { stored } of this.#tasks.values()) if (stored !== undefined) unproven.add(stored);
    return {
      checkpoint,
      ...(this.#newest && { newest: this.#newest }),
      ...(checkpoint < refoldTo && { refoldTo }),
      ...(this.#leadership !== undefined && { leadership: this.#leadership }),
      ...(isInDoubt && { isInDoubt }),
      ...(this.#leapTo !== undefined && { leapTo: this.#leapTo }),
      unproven: [...unproven],
    };
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

  /** Number of the shard's records that are stored but not folded: those not yet read at the newest delivery, and those waiting here. */
  get lag(): number {
    let lag = this.#unread?.records ?? 0;
    for (const task of this.#tasks.values()) lag += unfoldedOf(task).length;
    return lag;
  }

  /**
   * When the oldest input that is not folded was stored, epoch milliseconds; undefined if all are folded. An input that is not yet read counts as
   * stored with the newest one that is.
   */
  get oldestInputAt(): number | undefined {
    let oldest: number | undefined;
    for (const task of this.#tasks.values()) {
      const [seq] = unfoldedOf(task);
      if (seq !== undefined && (oldest === undefined || seq < oldest)) oldest = seq;
    }
    if (oldest !== undefined) return this.#readTimes.of(oldest);
    return this.#unread?.storedAt;
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
    const { onRefold, leadershipOf } = this.#context;
    const leadership = await leadershipOf(this.index);
    try {
      await this.#look();
    } catch (error) {
      if (!(error instanceof HistoryLost)) throw error;
      const lastSeq = await this.#lastInput();
      [this.#checkpoint, this.#lastReadSeq, this.#newest, this.#unproven] = [0, 0, undefined, []];
      [this.#refoldTo, this.#leapTo] = [lastSeq, lastSeq];
      onRefold(this.index);
    }
    if (this.#isInDoubt && (leadership === undefined || leadership !== this.#leadership)) this.#leapTo = await this.#lastInput();
    [this.#leadership, this.#isInDoubt] = [leadership, false];
    if (!this.#stop.signal.aborted) await this.#readInputs();
  }

  async #lastInput(): Promise<number> {
    return (await this.#context.inputs.extent()).ofShard(this.index).lastSeq;
  }

  #noteStored(stored: RecordMark): void {
    const task = this.#tasks.get(taskOfFactsId(stored.id));
    if (task !== undefined) task.stored = stored;
    const before = this.#newest;
    if (before !== undefined && before.seq >= stored.seq) return;
    this.#newest = stored;
    this.#storedAtMs = this.#context.now();
    if (before === undefined || taskOfFactsId(before.id) === taskOfFactsId(stored.id)) return;
    if (this.#tasks.get(taskOfFactsId(before.id))?.stored?.id !== before.id) this.#unproven.push(before);
  }

  /** Rejects if the log has lost a record. Concurrent calls share the next check. */
  #lookForNewest(): Promise<void> {
    if (this.#looking === undefined) {
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined;
      });
      return this.#looking;
    }
    const before = this.#looking.catch(() => {});
    this.#nextLook ??= before.then(() => {
      this.#nextLook = undefined;
      return this.#lookForNewest();
    });
    return this.#nextLook;
  }

  async #look(): Promise<void> {
    const newest = this.#newest;
    const marks = [...new Set([...this.#unproven, this.#found, newest])].filter(mark => mark !== undefined);
    const { length } = this.#unproven;
    for (let first = 0; first < marks.length; first += LOOKS_AT_ONCE_MAX) {
      const looks = marks.slice(first, first + LOOKS_AT_ONCE_MAX).map(mark => this.#context.facts.isLost(mark));
      if ((await Promise.all(looks)).includes(true)) throw new HistoryLost('the log lost records that it had acknowledged');
    }
    this.#unproven.splice(0, length);
    this.#found = newest;
  }

  async #readInputs(): Promise<void> {
    let [records, bytes] = [0, 0];
    const { inputs } = this.#context;
    const onRejected = (rejected: RejectedInput) => this.#context.onRejectedRecord(rejected);
    for await (const input of inputs.readShard(this.index, this.#checkpoint + 1, this.#stop.signal, onRejected)) {
      this.#readTimes.add(input.seq, input.storedAt);
      this.#dispatch(input);
      this.#lastReadSeq = input.seq;
      this.#recordsRead += 1;
      records += 1;
      bytes += input.bytes;
      if (records < RECORDS_PER_CHECK && bytes < BYTES_PER_CHECK) continue;
      [records, bytes] = [0, 0];
      while (this.#pendingSize() > SHARD_WAITING_UNITS_MAX && !this.#stop.signal.aborted) await sleep(CATCH_UP_POLL_MS);
    }
  }

  #dispatch(input: StoredInput): void {
    const task = this.#tasks.get(input.taskId);
    // A blocked task folds nothing, so further inputs of it are not kept.
    if (task?.blockedAt !== undefined) return;
    if (task !== undefined) noteRead(task, input.seq);
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
        unfolded: [input.seq],
        sinceLook: 0,
      };
      this.#tasks.set(input.taskId, loading);
      if (createsTask(input)) this.#continue(input.taskId, loading, 'new');
      else this.#load(input.taskId, loading).catch(error => this.#fail(error));
    }
  }

  async #load(taskId: string, task: LoadedTask): Promise<void> {
    const { facts, indexedSeq } = this.#context;
    const reading = Promise.all([facts.last(taskId), indexedSeq(taskId)]);
    const [found, seq] = await reading.catch(error => this.#block(taskId, task, error));
    // The index is written after the facts, so another relay may have stored some between the two reads.
    const isBehind = (seq ?? 0) > (found?.seq ?? 0);
    const newest = isBehind ? await facts.last(taskId) : found;
    // A lease may not name the last records of an owner that died. The index proves their loss if the log ends before the indexed one or has another
    // one in its place. Inputs are read again for that only once, because the index keeps the sequence of a task that does not come back.
    if (this.#refoldTo === undefined && seq !== undefined && seq > (newest?.seq ?? 0))
      this.#unproven.push({ seq, id: `${taskId}:` });
    const isNew = newest === undefined && (seq === undefined || (await this.#isLost(task, seq)));
    // The state that was read may be older than the facts that this shard has stored. The next input's ordinals would then show a gap.
    await this.#lookForNewest();
    if (this.#stop.signal.aborted || task.blockedAt !== undefined) return;
    this.#continue(taskId, task, newest ?? (isNew ? 'new' : 'expired'));
  }

  /** Whether the log has lost all facts of a task whose index entry names `seq`, although retention has not reached that record yet. */
  async #isLost(task: LoadedTask, seq: number): Promise<boolean> {
    if (task.waiting[0] === undefined || task.waiting[0].seq > (this.#refoldTo ?? 0)) return false;
    return seq >= (await this.#context.facts.extent()).ofShard(this.index).firstSeq;
  }

  #continue(taskId: string, task: LoadedTask, stored: StoredFacts | 'new' | 'expired'): void {
    const pipeline = new TaskPipeline(taskId, stored, {
      ...this.#context,
      leapTo: this.#leapTo,
      onFailure: error => this.#fail(error),
    });
    task.pipeline = pipeline;
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

  #pendingSize(): number {
    let size = 0;
    for (const { pipeline, waitingBytes } of this.#tasks.values()) size += pipeline?.queuedUnits ?? waitingBytes;
    return size;
  }

  #sweep(): void {
    this.#evictIdle();
    this.#listQuiet();
    if (!this.#isLookDue()) return;
    // Without an answer the next sweep checks again.
    this.#lookForNewest().catch(error => error instanceof HistoryLost && this.#fail(error));
  }

  /** With hundreds of idle shards the looks would cost more than everything else that the shards do. */
  #isLookDue(): boolean {
    const nowMs = this.#context.now();
    const isOld = this.#unproven.length === 0 && nowMs - this.#storedAtMs >= LOOK_OFTEN_MS;
    if (isOld && nowMs - this.#lookedAtMs < LOOK_OLD_MS) return false;
    this.#lookedAtMs = nowMs;
    return true;
  }

  #evictIdle(): void {
    const now = this.#context.now();
    for (const [taskId, { pipeline, stored, listed }] of this.#tasks) {
      if (pipeline?.isIdle !== true) continue;
      const { aggregate, lastInputAt } = pipeline;
      const isEnded = aggregate !== undefined && isTerminal(aggregate.state);
      if (now - lastInputAt < (isEnded ? ENDED_IDLE_MS : IDLE_MS)) continue;
      pipeline.stop();
      this.#tasks.delete(taskId);
      if (stored !== undefined && stored !== listed) this.#unproven.push(stored);
    }
  }

  /** Lists the newest records of quiet tasks, each once. */
  #listQuiet(): void {
    const now = this.#context.now();
    for (const task of this.#tasks.values()) {
      const { pipeline, stored, listed } = task;
      if (pipeline === undefined || stored === undefined || stored === listed || now - pipeline.lastInputAt < QUIET_MS) continue;
      task.listed = stored;
      this.#unproven.push(stored);
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

function noteRead(task: LoadedTask, seq: number): void {
  task.unfolded.push(seq);
  task.sinceLook += 1;
  if (task.sinceLook >= Math.max(RECORDS_PER_LOOK, task.unfolded.length / 2)) unfoldedOf(task);
}

/** Forgets folded records, so that the list contains only waiting ones. */
function unfoldedOf(task: LoadedTask): readonly number[] {
  const { pipeline } = task;
  task.sinceLook = 0;
  if (pipeline !== undefined && task.unfolded.length > 0) {
    const { foldedSeq } = pipeline;
    task.unfolded = task.unfolded.filter(seq => seq > foldedSeq);
  }
  return task.unfolded;
}

/**
 * Whether the task cannot have facts yet, which saves a read of the log: its id was made for this message, and the message was stored
 * after this relay took the shard. If another relay has folded it nevertheless, the append conflicts and the shard restarts.
 */
function createsTask({ record, isLive }: StoredInput): boolean {
  return isLive === true && record.from === 'client' && record.input.kind === 'message' && record.input.creates === true;
}
