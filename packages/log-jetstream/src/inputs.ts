import { type InputRecord, rawShardFilter, rawSubject } from '@hopline/events';
import { type InputAppendOptions, type InputLog, requireTaskId, type StoredInput } from '@hopline/log';
import { decodeInput, decodeTrace, encodePayload } from './codec.ts';
import type { Connection } from './connection.ts';
import type { Delivery } from './delivery.ts';
import { HistoryReader } from './history.ts';
import { readOrdered } from './ordered-reader.ts';
import type { Publisher } from './publisher.ts';
import { retry } from './retry.ts';

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
    this.#history = new HistoryReader(connection, connection.names.inputsStream, options.readBytesMax);
  }

  async append(taskId: string, record: InputRecord, options: InputAppendOptions): Promise<{ seq: number; duplicate: boolean }> {
    requireTaskId(taskId);
    return this.#publisher.publish(this.#subject(taskId), encodePayload(record), options);
  }

  async *read(taskId: string): AsyncGenerator<StoredInput, void> {
    requireTaskId(taskId);
    const { jsm, names } = this.#connection;
    const subject = this.#subject(taskId);
    const newest = () => jsm.streams.getMessage(names.inputsStream, { last_by_subj: subject });
    const tail = (await retry(this.#connection, 'the newest input of a task', newest))?.seq ?? 0;
    for await (const delivery of this.#history.read(subject, 1, tail)) {
      const input = this.#decode(delivery);
      if (input) yield input;
    }
  }

  async *readShard(shard: number, from: number, signal: AbortSignal): AsyncGenerator<StoredInput, void> {
    const { names } = this.#connection;
    const filter = names.subject(rawShardFilter(shard));
    const reading = { stream: names.inputsStream, filter, from, bytesMax: this.#readBytesMax, signal };
    for await (const { deliveries } of readOrdered(this.#connection, reading)) {
      for (const delivery of deliveries) {
        if (signal.aborted) return;
        const input = this.#decode(delivery);
        if (input) yield input;
      }
    }
  }

  #subject(taskId: string): string {
    return this.#connection.names.subject(rawSubject(taskId, this.#shards));
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
  // A task id is the last token of its subject.
  const taskId = msg.subject.slice(msg.subject.lastIndexOf('.') + 1);
  return { seq, taskId, record, bytes: msg.data.length, storedAt, ...decodeTrace(msg.headers) };
}
