import { setTimeout as sleep } from 'node:timers/promises';
import type { CoalesceSettings } from '@hopline/coalesce';
import type { InputLog, StoredInput } from '@hopline/log';
import type { PipelineContext } from './pipeline-context.ts';
import { TaskPipeline } from './task-pipeline.ts';

/** What waits in one shard for appends (UTF-16 units), or for its task to be read (bytes); beyond it the shard reads no further until the log has caught up. */
export const SHARD_WAITING_UNITS_MAX = 16 * 1024 * 1024;
/** A task without input for this long leaves memory; its next input reads it back from the log. Milliseconds. */
const IDLE_MS = 30_000;
const SWEEP_MS = 5_000;
const CATCH_UP_POLL_MS = 5;
/** The bound on waiting text is looked at once in so many records: a look costs one step per task. */
const RECORDS_PER_CHECK = 128;

export type ShardContext = Omit<PipelineContext, 'coalesce'> & { inputs: InputLog; coalesce: CoalesceSettings };

/** Inputs of a task that arrive while its newest record is being read. */
type Entry = { pipeline: TaskPipeline | undefined; waiting: StoredInput[]; waitingBytes: number };

/** All tasks of one shard: reads the shard's inputs in order and hands each to its task. */
export class Shard {
  readonly index: number;
  readonly #context: ShardContext;
  readonly #tasks = new Map<string, Entry>();
  readonly #stop = new AbortController();
  #checkpoint: number;
  #read: number;
  #reading: Promise<void> | undefined;
  #sweep: NodeJS.Timeout | undefined;
  #failed = false;

  constructor(index: number, checkpoint: number, context: ShardContext) {
    this.index = index;
    this.#context = context;
    this.#checkpoint = checkpoint;
    this.#read = checkpoint;
  }

  start(): void {
    this.#sweep = setInterval(() => this.#evict(), SWEEP_MS);
    this.#reading = this.#readInputs().catch(error => this.#fail(error));
  }

  /** Stops reading and appending. What was not appended is still in the inputs: nothing is lost by stopping anywhere. */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#sweep);
    for (const { pipeline } of this.#tasks.values()) pipeline?.stop();
    await this.#reading;
  }

  /** Every raw record of the shard up to this sequence is folded into the log, side effects included. */
  get checkpoint(): number {
    if (this.#failed) return this.#checkpoint;
    let settled = this.#read;
    for (const { pipeline, waiting } of this.#tasks.values()) {
      if (waiting[0] !== undefined) settled = Math.min(settled, waiting[0].seq - 1);
      if (pipeline !== undefined && !pipeline.idle) settled = Math.min(settled, pipeline.settled);
    }
    this.#checkpoint = Math.max(this.#checkpoint, settled);
    return this.#checkpoint;
  }

  get taskCount(): number {
    return this.#tasks.size;
  }

  async #readInputs(): Promise<void> {
    let records = 0;
    for await (const input of this.#context.inputs.readShard(this.index, this.#checkpoint + 1, this.#stop.signal)) {
      this.#hand(input);
      this.#read = input.seq;
      if (++records % RECORDS_PER_CHECK !== 0) continue;
      while (this.#waiting() > SHARD_WAITING_UNITS_MAX && !this.#stop.signal.aborted) await sleep(CATCH_UP_POLL_MS);
    }
  }

  #hand(input: StoredInput): void {
    const entry = this.#tasks.get(input.taskId);
    if (entry?.pipeline !== undefined) {
      entry.pipeline.accept(input);
    } else if (entry !== undefined) {
      entry.waiting.push(input);
      entry.waitingBytes += input.bytes;
    } else {
      const opening: Entry = { pipeline: undefined, waiting: [input], waitingBytes: input.bytes };
      this.#tasks.set(input.taskId, opening);
      this.#open(input.taskId, opening).catch(error => this.#fail(error));
    }
  }

  async #open(taskId: string, entry: Entry): Promise<void> {
    const newest = await this.#context.facts.last(taskId);
    if (this.#stop.signal.aborted) return;
    const pipeline = new TaskPipeline(taskId, newest, { ...this.#context, failed: error => this.#fail(error) });
    entry.pipeline = pipeline;
    for (const input of entry.waiting) pipeline.accept(input);
    entry.waiting = [];
    entry.waitingBytes = 0;
  }

  #waiting(): number {
    let units = 0;
    for (const { pipeline, waitingBytes } of this.#tasks.values()) units += pipeline?.waiting ?? waitingBytes;
    return units;
  }

  #evict(): void {
    const before = this.#context.now() - IDLE_MS;
    for (const [taskId, { pipeline }] of this.#tasks) {
      if (pipeline?.idle === true && pipeline.touchedAt < before) {
        pipeline.stop();
        this.#tasks.delete(taskId);
      }
    }
  }

  #fail(error: unknown): void {
    if (this.#failed || this.#stop.signal.aborted) return;
    this.#checkpoint = this.checkpoint;
    this.#failed = true;
    this.#stop.abort();
    this.#context.failed(error);
  }
}
