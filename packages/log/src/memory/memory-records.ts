import { decodeInputRecord, type FactRecord, type InputRecord, type TraceCarrier, writerOf } from '@hopline/events';
import { LaterVersion, LogUnavailable } from '../errors.ts';
import {
  type AppendOptions,
  type FactLog,
  type FollowStart,
  type LogExtent,
  type ReadStart,
  type RecordFacts,
  type RecordMark,
  recordFactsOf,
  type StoredFacts,
} from '../fact-log.ts';
import { type FollowOptions, type FollowSource, follow } from '../follow.ts';
import type { InputAppendOptions, InputLog, RejectedInput, StoredInput, Unread } from '../input-log.ts';
import { relayOfFactsId, requireTaskId, requireWriter, taskOfFactsId } from '../names.ts';
import { decode, type Faults, type StoredText, take } from './memory-stream.ts';
import type { MemoryStreams } from './memory-streams.ts';

export class MemoryInputs implements InputLog {
  readonly #streams: MemoryStreams;
  readonly #closed: AbortSignal;

  constructor(streams: MemoryStreams, closed: AbortSignal) {
    this.#streams = streams;
    this.#closed = closed;
  }

  async append(taskId: string, record: InputRecord, options: InputAppendOptions): Promise<{ seq: number; duplicate: boolean }> {
    requireWriter(writerOf(record));
    requireOpen(this.#closed);
    const { seq, duplicate } = await this.#streams.write(taskId, record, options);
    return { seq, duplicate };
  }

  async *read(taskId: string): AsyncGenerator<StoredInput, void> {
    requireTaskId(taskId);
    for (const stored of this.#streams.ofTask(taskId, 0)) {
      requireOpen(this.#closed);
      const input = toInput(stored);
      if ('record' in input) yield input;
    }
  }

  unread(shard: number, after: number): Unread | undefined {
    const [oldest, ...others] = this.#streams
      .ofShard(shard, { seq: after + 1 })
      .map(toInput)
      .filter(input => 'record' in input);
    return oldest && { records: 1 + others.length, storedAt: oldest.storedAt };
  }

  async *readStoredShard(shard: number, start: ReadStart): AsyncGenerator<readonly StoredInput[], void> {
    requireOpen(this.#closed);
    const inputs = this.#streams.ofShard(shard, start).map(toInput);
    yield inputs.filter(input => 'record' in input).map(({ trace: _trace, ...input }) => input);
  }

  async extent(): Promise<LogExtent> {
    requireOpen(this.#closed);
    return this.#streams.extent;
  }

  async recordAt(taskId: string, seq: number): Promise<InputRecord | undefined> {
    for await (const stored of this.read(taskId)) if (stored.seq === seq) return stored.record;
    return undefined;
  }

  async *readShard(
    shard: number,
    from: number,
    signal: AbortSignal,
    onRejected: (rejected: RejectedInput) => void = () => {},
  ): AsyncGenerator<StoredInput, void> {
    let next = from;
    const beforeLive = this.#streams.extent.ofShard(shard).lastSeq;
    let wake: (() => void) | undefined;
    const onWake = () => wake?.();
    const unlisten = this.#streams.listen(onWake);
    signal.addEventListener('abort', onWake);
    this.#closed.addEventListener('abort', onWake);
    try {
      while (!signal.aborted) {
        requireOpen(this.#closed);
        const stored = this.#streams.nextOfShard(shard, next);
        if (stored) {
          next = stored.seq + 1;
          const input = toInput(stored);
          if (!('record' in input)) onRejected(input);
          else yield { ...input, ...(input.seq > beforeLive && { isLive: true as const }) };
        } else {
          await new Promise<void>(resolve => {
            wake = resolve;
          });
        }
      }
    } finally {
      unlisten();
      signal.removeEventListener('abort', onWake);
      this.#closed.removeEventListener('abort', onWake);
    }
  }
}

export class MemoryFacts implements FactLog {
  readonly #streams: MemoryStreams;
  readonly #faults: Faults;
  readonly #closed: AbortSignal;
  readonly #reconnects: Set<() => void>;
  readonly #options: FollowOptions;

  constructor(streams: MemoryStreams, faults: Faults, closed: AbortSignal, reconnects: Set<() => void>, options: FollowOptions) {
    this.#streams = streams;
    this.#faults = faults;
    this.#closed = closed;
    this.#reconnects = reconnects;
    this.#options = options;
  }

  async append(record: FactRecord, options: AppendOptions): Promise<{ seq: number; bytes: number }> {
    requireOpen(this.#closed);
    const { seq, bytes } = await this.#streams.write(record.aggregate.taskId, record, options);
    return { seq, bytes };
  }

  async last(taskId: string): Promise<StoredFacts | undefined> {
    requireTaskId(taskId);
    requireOpen(this.#closed);
    const newest = this.#streams.last(taskId);
    if (newest === undefined) return undefined;
    const record = decode<{ v?: number }>(newest);
    if ((record?.v ?? 1) > 1) throw new LaterVersion('the newest record has a later version');
    const earlier = () => this.#streams.ofTask(taskId, 0).map(toFacts);
    const facts = factsOf(newest, record) ?? earlier().findLast(one => one !== undefined);
    return facts && { ...facts, seq: newest.seq, id: newest.id };
  }

  async lastOfEach(taskIds: readonly string[]): Promise<Map<string, StoredFacts>> {
    const found = new Map<string, StoredFacts>();
    for (const taskId of taskIds) {
      const last = await this.last(taskId);
      if (last !== undefined) found.set(taskId, last);
    }
    return found;
  }

  read(taskId: string, from: number): AsyncIterable<StoredFacts> {
    requireTaskId(taskId);
    return this.#read(taskId, from);
  }

  async follow(taskId: string, after: FollowStart, signal: AbortSignal): Promise<AsyncIterable<StoredFacts>> {
    requireTaskId(taskId);
    requireOpen(this.#closed);
    return follow(this.#source(taskId), after, AbortSignal.any([signal, this.#closed]), this.#options);
  }

  async extent(): Promise<LogExtent> {
    requireOpen(this.#closed);
    return this.#streams.extent;
  }

  async isLost({ seq, id }: RecordMark): Promise<boolean> {
    requireOpen(this.#closed);
    return this.#streams.of(taskOfFactsId(id)).isLost(seq, stored => stored.id === id);
  }

  async *readStoredShard(shard: number, start: ReadStart): AsyncGenerator<readonly RecordFacts[], void> {
    requireOpen(this.#closed);
    const records = this.#streams.ofShard(shard, start).flatMap(stored => {
      const facts = toFacts(stored);
      return facts === undefined ? [] : [{ facts: recordFactsOf(facts), id: stored.id }];
    });
    const last = records.at(-1);
    yield records.map(({ facts, id }) => (facts === last?.facts ? { ...facts, id } : facts));
  }

  async *#read(taskId: string, from: number): AsyncGenerator<StoredFacts, number> {
    const stored = this.#streams.ofTask(taskId, from);
    for (const one of stored) {
      requireOpen(this.#closed);
      // A broker answers asynchronously, so records appended between two answers are not part of this read.
      await null;
      const facts = toFacts(one);
      if (facts) yield { ...facts, id: one.id };
    }
    return stored.at(-1)?.seq ?? 0;
  }

  #source(taskId: string): FollowSource {
    return {
      read: from => this.#read(taskId, from),
      tail: async () => {
        const isStale = take(this.#faults, 'staleTails');
        const stored = isStale ? this.#streams.ofTask(taskId, 0).at(-2) : this.#streams.last(taskId);
        return stored && { seq: stored.seq, startSeq: decode<FactRecord>(stored)?.startSeq ?? 0, id: stored.id };
      },
      isLost: async (seq, id) =>
        this.#streams.of(taskId).isLost(seq, stored => (id === undefined ? stored.taskId === taskId : stored.id === id)),
      subscribe: async (onLive, onReconnect) => {
        const unlisten = this.#streams.listen((stored, last) => {
          if (stored.taskId !== taskId || take(this.#faults, 'loseLive')) return;
          const { seq, bytes, continuesText = false } = stored;
          onLive({ seq, last, bytes, continuesText, decode: () => toFacts(stored), id: () => stored.id });
        });
        this.#reconnects.add(onReconnect);
        return () => {
          unlisten();
          this.#reconnects.delete(onReconnect);
        };
      },
    };
  }
}

export function requireOpen(closed: AbortSignal): void {
  if (closed.aborted) throw new LogUnavailable('the log is closed');
}

function toInput(stored: StoredText): StoredInput | RejectedInput {
  const record = decodeInputRecord(decode(stored));
  if (typeof record === 'string') return { seq: stored.seq, taskId: stored.taskId, fault: record, ...traceOf(stored) };
  const { seq, taskId, bytes, at: storedAt } = stored;
  return { seq, taskId, record, writer: writerOf(record), bytes, storedAt, ...traceOf(stored) };
}

function toFacts(stored: StoredText): StoredFacts | undefined {
  return factsOf(stored, decode(stored));
}

function factsOf(stored: StoredText, decoded: { v?: number } | undefined): StoredFacts | undefined {
  if (decoded?.v !== 1) return undefined;
  const record = decoded as FactRecord;
  return { seq: stored.seq, record, storedAt: stored.at, bytes: stored.bytes, ...relayOfFactsId(stored.id), ...traceOf(stored) };
}

function traceOf(stored: StoredText): { trace?: TraceCarrier } {
  return stored.trace ? { trace: { ...stored.trace } } : {};
}
