import { type InputRecord, mayAppend, rawShardFilter, rawTaskFilter, type Writer, writerOf } from '@hopline/events';
import {
  type InputAppendOptions,
  type InputLog,
  type LogExtent,
  type ReadStart,
  type RejectedInput,
  requireTaskId,
  type StoredInput,
  type Unread,
} from '@hopline/log';
import { nuid } from '@nats-io/nats-core';
import { decodeInput, decodeTrace, encodePayload } from './codec.ts';
import type { Connection } from './connection.ts';
import { type HistoryMessage, HistoryReader } from './history-reader.ts';
import { headersOf } from './message-headers.ts';
import type { Publisher } from './publisher.ts';
import { readExtents } from './retention.ts';
import { retry } from './retry.ts';
import { ShardReaders } from './shard-readers.ts';
import { TaskSubjects } from './task-subjects.ts';

/** `writer`: the writer of every record appended here. Tools and tests leave it out, so that the record determines the writer. */
type JetStreamInputsOptions = { writer?: Writer | undefined };

export class JetStreamInputs implements InputLog {
  readonly #connection: Connection;
  readonly #publisher: Publisher;
  readonly #subjects: TaskSubjects;
  readonly #writer: Writer | undefined;
  readonly #history: HistoryReader;
  /** One entry for each stream whose shards were read. */
  readonly #readers = new Map<string, ShardReaders>();

  constructor(connection: Connection, publisher: Publisher, options: JetStreamInputsOptions) {
    this.#connection = connection;
    this.#publisher = publisher;
    this.#subjects = new TaskSubjects(connection.names, () => connection.layouts);
    this.#writer = options.writer;
    this.#history = new HistoryReader(connection);
  }

  async append(taskId: string, record: InputRecord, options: InputAppendOptions): Promise<{ seq: number; duplicate: boolean }> {
    this.#connection.requireKnownLayout(taskId);
    const subject = this.#subjects.ofInputs(taskId, this.#writer ?? writerOf(record));
    const encode = () => encodePayload(record);
    const publish = (id: string) => {
      const sent = { ...options, id, copiesTrace: record.from === 'client' };
      return options.waitsForRoom
        ? this.#publisher.publishInTurn(subject, encode, sent)
        : this.#publisher.publish(subject, encode(), sent);
    };
    const isLost = async ({ seq, duplicate }: { seq: number; duplicate: boolean }) =>
      duplicate && !(await this.isOwn(taskId, seq, subject));
    const stored = await publish(options.id);
    if (!(await isLost(stored))) return stored;
    // The stream compares ids over all subjects, and ids can be guessed: another writer has used this one for an input of its own (ADR 269). The first id after
    // it is the same for each try, so that an append that is repeated is stored once.
    const again = await publish(`again:${stored.seq}:${options.id}`);
    return (await isLost(again)) ? publish(nuid.next()) : again;
  }

  /** Whether the writer of this subject has stored the record at a sequence. Also true if retention has removed that record. */
  protected async isOwn(taskId: string, seq: number, subject: string): Promise<boolean> {
    const { jsm } = this.#connection;
    const stream = this.#streamOf(taskId);
    const get = () => jsm.streams.getMessage(stream, { seq });
    const found = await retry(this.#connection, 'an input of a task', get, { readsFrom: stream });
    return found === null || found.subject === subject;
  }

  async *read(taskId: string): AsyncGenerator<StoredInput, void> {
    requireTaskId(taskId);
    const { jsm, names } = this.#connection;
    const subject = names.subject(rawTaskFilter(taskId, this.#connection.layouts));
    const stream = this.#streamOf(taskId);
    const newest = () => jsm.streams.getMessage(stream, { last_by_subj: subject });
    const tail = (await retry(this.#connection, 'the newest input of a task', newest, { readsFrom: stream }))?.seq ?? 0;
    for await (const delivery of this.#history.read(stream, subject, 1, tail)) {
      const input = this.#toInput(delivery);
      if ('record' in input) yield { ...input, ...decodeTrace(headersOf(delivery.msg)) };
      else this.#reportUndecodable();
    }
  }

  async *readStoredShard(shard: number, start: ReadStart): AsyncGenerator<readonly StoredInput[], void> {
    const { jsm, names } = this.#connection;
    const filter = names.subject(rawShardFilter(shard));
    const stream = names.inputsStreamOf(shard);
    const newest = () => jsm.streams.getMessage(stream, { last_by_subj: filter });
    const tail = (await retry(this.#connection, 'the newest input of a shard', newest, { readsFrom: stream }))?.seq ?? 0;
    const from = 'seq' in start ? start.seq : new Date(start.sinceMs);
    for await (const batch of this.#history.readBatches(stream, filter, from, tail)) {
      const inputs: StoredInput[] = [];
      for (const delivery of batch) {
        const input = this.#toInput(delivery);
        if ('record' in input) inputs.push(input);
        else this.#reportUndecodable();
      }
      yield inputs;
    }
  }

  async recordAt(taskId: string, seq: number): Promise<InputRecord | undefined> {
    requireTaskId(taskId);
    const { jsm, names } = this.#connection;
    const stream = this.#streamOf(taskId);
    const get = () => jsm.streams.getMessage(stream, { seq });
    const found = await retry(this.#connection, 'an input of a task', get, { readsFrom: stream });
    if (found === null || !found.subject.startsWith(names.subject(rawTaskFilter(taskId, this.#connection.layouts)).slice(0, -1)))
      return undefined;
    const record = decodeInput(found.data);
    return typeof record === 'string' ? undefined : record;
  }

  extent(): Promise<LogExtent> {
    return readExtents(this.#connection, this.#connection.names.inputsStreams, this.#connection.layouts);
  }

  async *readShard(
    shard: number,
    from: number,
    signal: AbortSignal,
    onRejected: (rejected: RejectedInput) => void = () => this.#reportUndecodable(),
  ): AsyncGenerator<StoredInput, void> {
    const readers = this.#readersOf(this.#connection.names.inputsStreamOf(shard));
    for await (const { deliveries, beforeLive } of readers.read(shard, from, signal)) {
      for (const delivery of deliveries) {
        if (signal.aborted) return;
        const input = this.#toInput(delivery);
        const trace = decodeTrace(headersOf(delivery.msg));
        if ('record' in input) yield { ...input, ...(input.seq > beforeLive && { isLive: true as const }), ...trace };
        else onRejected({ ...input, ...trace });
      }
    }
  }

  unread(shard: number, after: number): Unread | undefined {
    return this.#readersOf(this.#connection.names.inputsStreamOf(shard)).unread(shard, after);
  }

  #readersOf(stream: string): ShardReaders {
    const known = this.#readers.get(stream);
    if (known !== undefined) return known;
    const readers = new ShardReaders(this.#connection, { stream });
    this.#readers.set(stream, readers);
    return readers;
  }

  #streamOf(taskId: string): string {
    this.#connection.requireKnownLayout(taskId);
    return this.#connection.names.inputsStreamOf(this.#connection.layouts.shardOf(taskId));
  }

  #reportUndecodable(): void {
    this.#connection.onEvent({ type: 'undecodable', where: 'inputs' });
  }

  #toInput({ msg, seq, storedAt }: HistoryMessage): StoredInput | RejectedInput {
    const origin = this.#subjects.originOf(msg.subject);
    if (origin === undefined) return { seq, taskId: this.#subjects.taskIdIn(msg.subject), fault: 'not a record' };
    const { taskId, writer } = origin;
    const decoded = decodeInput(msg.data);
    const record = typeof decoded === 'string' || mayAppend(writer, decoded) ? decoded : 'wrong writer';
    if (typeof record === 'string') return { seq, taskId, fault: record };
    return { seq, taskId, record, writer, bytes: msg.data.length, storedAt };
  }
}
