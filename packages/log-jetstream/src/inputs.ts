import { type InputRecord, RAW_PREFIX, rawShardFilter, rawSubject } from '@hopline/events';
import { type InputAppendOptions, type InputLog, requireTaskId, type StoredInput } from '@hopline/log';
import { decodeInput, decodeTrace, encodePayload } from './codec.ts';
import type { Connection } from './connection.ts';
import type { Delivery } from './delivery.ts';
import { HistoryReader } from './history.ts';
import { readOrdered } from './ordered-reader.ts';
import type { Publisher } from './publisher.ts';
import { type RetryOptions, retry } from './retry.ts';
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
      const input = this.#decode(delivery);
      if (input) yield input;
    }
  }

  async *readShard(shard: number, from: number, signal: AbortSignal): AsyncGenerator<StoredInput, void> {
    const begin = (next: number, options: RetryOptions) => this.#existing(next, options);
    const reading = { stream: INPUTS_STREAM, filter: rawShardFilter(shard), from, begin, bytesMax: this.#readBytesMax, signal };
    for await (const { deliveries } of readOrdered(this.#connection, reading)) {
      for (const delivery of deliveries) {
        if (signal.aborted) return;
        const input = this.#decode(delivery);
        if (input) yield input;
      }
    }
  }

  /**
   * Sequence 1 when the stream ends before `next - 1`, which was read: nothing new would arrive until it reaches `next` again. What
   * was folded before is recognized.
   */
  async #existing(next: number, options: RetryOptions): Promise<number> {
    const info = () => this.#connection.jsm.streams.info(INPUTS_STREAM);
    const { state } = await retry(this.#connection, INPUTS_STREAM, info, options);
    if (next <= state.last_seq + 1) return next;
    this.#connection.onEvent({ type: 'inputs-behind', stream: INPUTS_STREAM });
    return 1;
  }

  #decode(delivery: Delivery): StoredInput | undefined {
    const input = toInput(delivery);
    if (!input) this.#connection.onEvent({ type: 'undecodable', where: 'inputs' });
    return input;
  }
}

function toInput({ msg, seq, storedAt }: Delivery): StoredInput | undefined {
  const record = decodeInput(msg.data);
  if (!record) return undefined;
  const taskId = msg.subject.slice(SUBJECT_PREFIX_CHARS);
  return { seq, taskId, record, bytes: msg.data.length, storedAt, ...decodeTrace(msg.headers) };
}
