import { type InputRecord, isTaskId, RAW_PREFIX, rawShardFilter, rawSubject } from '@hopline/events';
import { type InputAppendOptions, type InputLog, type RejectedInput, requireTaskId, type StoredInput } from '@hopline/log';
import { decodeInput, decodeTrace, encodePayload } from './codec.ts';
import type { Connection } from './connection.ts';
import type { Delivery } from './delivery.ts';
import { HistoryReader } from './history.ts';
import { readOrdered } from './ordered-reader.ts';
import type { Publisher } from './publisher.ts';
import { retry } from './retry.ts';
import { INPUTS_STREAM } from './streams.ts';

/** Length of `a2a.raw.<shard>.` */
const SUBJECT_PREFIX_CHARS = RAW_PREFIX.length + '.00.'.length;

export class JetStreamInputs implements InputLog {
  readonly #connection: Connection;
  readonly #publisher: Publisher;
  readonly #shards: number;
  readonly #readBytesMax: number;
  readonly #history: HistoryReader;

  constructor(connection: Connection, publisher: Publisher, options: { shards: number; readBytesMax: number }) {
    this.#connection = connection;
    this.#publisher = publisher;
    this.#shards = options.shards;
    this.#readBytesMax = options.readBytesMax;
    this.#history = new HistoryReader(connection, INPUTS_STREAM, options.readBytesMax);
  }

  async append(taskId: string, record: InputRecord, options: InputAppendOptions): Promise<{ seq: number; duplicate: boolean }> {
    requireTaskId(taskId);
    return this.#publisher.publish(rawSubject(taskId, this.#shards), encodePayload(record), options);
  }

  async *read(taskId: string): AsyncGenerator<StoredInput, void> {
    requireTaskId(taskId);
    const subject = rawSubject(taskId, this.#shards);
    const newest = () => this.#connection.jsm.streams.getMessage(INPUTS_STREAM, { last_by_subj: subject });
    const tail = (await retry(this.#connection, 'the newest input of a task', newest))?.seq ?? 0;
    for await (const delivery of this.#history.read(subject, 1, tail)) {
      const input = this.#toInput(delivery);
      if ('record' in input) yield input;
      else this.#report(input);
    }
  }

  async *readShard(
    shard: number,
    from: number,
    signal: AbortSignal,
    onRejected: (rejected: RejectedInput) => void = input => this.#report(input),
  ): AsyncGenerator<StoredInput, void> {
    const reading = { stream: INPUTS_STREAM, filter: rawShardFilter(shard), from, bytesMax: this.#readBytesMax, signal };
    for await (const { deliveries } of readOrdered(this.#connection, reading)) {
      for (const delivery of deliveries) {
        if (signal.aborted) return;
        const input = this.#toInput(delivery);
        if ('record' in input) yield input;
        else onRejected(input);
      }
    }
  }

  #report(_rejected: RejectedInput): void {
    this.#connection.onEvent({ type: 'undecodable', where: 'inputs' });
  }

  #toInput({ msg, seq, storedAt }: Delivery): StoredInput | RejectedInput {
    const taskId = msg.subject.slice(SUBJECT_PREFIX_CHARS);
    // Any client may publish on any subject: in the shard of another task, two relays would write that task.
    const isOwn = isTaskId(taskId) && msg.subject === rawSubject(taskId, this.#shards);
    const record = isOwn ? decodeInput(msg.data) : 'not a record';
    if (typeof record === 'string') return { seq, taskId, fault: record };
    return { seq, taskId, record, bytes: msg.data.length, storedAt, ...decodeTrace(msg.headers) };
  }
}
