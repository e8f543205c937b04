import assert from 'node:assert/strict';
import { type FactRecord, Layouts, shardOf } from '@hopline/events';
import type { Log } from '@hopline/log';
import { factRecord } from '@hopline/log/test-kit';

/** An implementation under test: a log, and functions that inject faults around it. */
export type LogUnderTest = {
  log: Log;
  /** Another process on the same log. It is closed with the log under test; a test that closes it earlier simulates a crash. */
  another(): Promise<Log>;
  /** The next `count` writes of `log` to inputs, facts or key-values are stored, but the answer is lost. */
  loseAcks(count: number): void;
  /** The next `count` live messages do not reach `log`. */
  loseLive(count: number): void;
  /** Cuts the connection of `log` while `during` runs; it is connected again when this resolves. */
  cut(during: () => Promise<void>): Promise<void>;
  /** Retention removes the records of a task below a sequence. */
  expire(what: 'inputs' | 'facts', taskId: string, below: number): Promise<void>;
  /** Loses the records after `lastSeq` in the facts stream of a task, and perhaps earlier ones. The stream then reuses their sequences. */
  lose(taskId: string, lastSeq: number): Promise<void>;
  /** Writes a payload that is not a record. */
  garbage(what: 'inputs' | 'facts', taskId: string): Promise<void>;
  /** Number of consumers of inputs and facts on the server. */
  readersLeft(): Promise<number>;
  close(): Promise<void>;
};

/** Options for the logs under test: short times, so that the suite takes seconds. */
export const CONTRACT_SHARDS = 16;
export const CONTRACT_LAYOUTS = Layouts.one(CONTRACT_SHARDS);
export const CONTRACT_ATTEMPTS_MAX = 2;
export const CONTRACT_REQUEUES_MAX = 4;
export const CONTRACT_ROLE_ITEMS_MAX = 12;
export const CONTRACT_TENANT_ITEMS_MAX = 6;
export const CONTRACT_ACK_WAIT_MS = 1_500;
export const CONTRACT_TAIL_CHECK_MS = 300;
export const CONTRACT_FOLLOW_BUFFER_RECORDS_MAX = 16;

export type Case = { name: string; run(t: LogUnderTest): Promise<void> };

export const TRACE = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'vendor=1' };

let tasks = 0;
const RUN = Date.now().toString(36);

/** A task id that no other case uses. */
export function newTask(): string {
  tasks += 1;
  return `task-${RUN}-${tasks}`;
}

/** A task id of a shard that no other case uses. */
export function newTaskOf(shard: number): string {
  for (;;) {
    const taskId = newTask();
    if (shardOf(taskId, CONTRACT_LAYOUTS) === shard) return taskId;
  }
}

/** `count` task ids of the same shard. */
export function tasksOfOneShard(count: number): { shard: number; taskIds: string[] } {
  const shard = shardOf(newTask(), CONTRACT_LAYOUTS);
  return { shard, taskIds: Array.from({ length: count }, () => newTaskOf(shard)) };
}

type Run = {
  /** Generations, both inclusive. */
  from: number;
  to: number;
  /** Sequence of the task's first record. Default: that of this run. */
  startSeq?: number;
  /** Sequence of the record before the run. Default: none. */
  expected?: number;
  continuesText?: boolean;
};

/** Appends the records of a run one after the other and returns their sequences. */
export async function appendRun(log: Log, taskId: string, run: Run): Promise<number[]> {
  const { from, to, startSeq = 0, expected = 0, continuesText = false } = run;
  const seqs: number[] = [];
  for (let generation = from; generation <= to; generation += 1) {
    const record = factRecord(taskId, generation, startSeq || (seqs[0] ?? 0));
    const options = { expected: seqs.at(-1) ?? expected, id: `${taskId}:${generation}`, continuesText };
    const { seq } = await log.facts.append(record, options);
    seqs.push(seq);
  }
  return seqs;
}

/** A case that waits longer than this fails instead of hanging. */
const PATIENCE_MS = 60_000;

export async function within<T>(promise: Promise<T>, what: string, ms = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: `${what}: not within ${ms} ms` })), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A busy machine can delay a run, so `run` has to take less than `ms` only once in this many runs. */
const FAST_RUNS_MAX = 8;

/** Repeats `run`, which returns the milliseconds it took, until it took less than `ms`. */
export async function onceWithin(ms: number, what: string, run: () => Promise<number>): Promise<void> {
  const tookMs: number[] = [];
  do tookMs.push(await run());
  while (tookMs.at(-1)! >= ms && tookMs.length < FAST_RUNS_MAX);
  assert.ok(tookMs.at(-1)! < ms, `${what}: ${tookMs.map(Math.round).join(', ')} ms, not less than ${ms} ms`);
}

/**
 * For deliveries that must not happen: if a machine stalls a process or the server for longer than the acknowledgement wait, they are
 * right, so `run` has to pass only once in STALLED_RUNS_MAX runs. A log that delivers again without a stall fails in each.
 */
export async function passesOnce(run: () => Promise<void>): Promise<void> {
  for (let runs = 1; ; runs++) {
    try {
      return await run();
    } catch (error) {
      if (runs === STALLED_RUNS_MAX) throw error;
    }
  }
}

const STALLED_RUNS_MAX = 3;

/** Collects the first `count` items, then ends the iteration as `break` does. */
export async function take<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  const all = async () => {
    if (count === 0) return;
    for await (const item of items) if (taken.push(item) >= count) break;
  };
  await within(all(), `${count} items, ${taken.length} came`);
  return taken;
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  return take(items, Number.POSITIVE_INFINITY);
}

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}

export const generationsOf = (records: { record: FactRecord }[]): number[] =>
  records.map(({ record }) => record.aggregate.generation);
export const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
