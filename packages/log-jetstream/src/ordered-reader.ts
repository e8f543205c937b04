import { backoffMs, LogUnavailable } from '@hopline/log';
import { AckPolicy, type ConsumerConfig, type ConsumerInfo, DeliverPolicy, ReplayPolicy } from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { type Delivery, PullInbox } from './pull-inbox.ts';
import { readerName } from './reader-name.ts';
import { pause, type RetryOptions, retry } from './retry.ts';

export type Reading = {
  stream: string;
  /** One subject filter or several. A list needs hasFilterLists, and no subject may match two of its filters. */
  filter: string | string[];
  /** First stream sequence or time, or `last-per-subject`: the current newest message of each subject, then all new ones. */
  from: number | Date | 'last-per-subject';
  /** Called before each consumer is opened, with the sequence at which it would begin. Returns the sequence to use. */
  begin?: (from: number, options: RetryOptions) => Promise<number>;
  /** Whether an empty batch is yielded when a heartbeat of the server shows how far an idle consumer has looked. Default false. */
  yieldsUpTo?: boolean;
  /** Whether a lost consumer is replaced, default true. If not, the reader ends. */
  replacesLost?: boolean;
  /** Bytes of one pull. A larger message is pulled by itself (`ReadSlots`). */
  bytesMax: number;
  /** Whether the reader waits for `idle`, so that its pulls must be short. Default false. */
  awaitsEnd?: () => boolean;
  signal: AbortSignal;
};

export type Batch = {
  deliveries: Delivery[];
  /** A pull ended because the server had no more messages. */
  idle: boolean;
  /** With `yieldsUpTo`: all matching messages up to this sequence have been delivered, and there are no more for now. */
  upTo?: number;
};

const READ_BATCH = 512;
/** Length of a pull while the reader waits for `idle`, which is reported when a pull ends. */
const SHORT_PULL_EXPIRES_MS = 5_000;
/**
 * A relay has a reader for each shard, so the pulls of idle readers are long. Their heartbeats reveal a lost consumer as soon as short
 * pulls would.
 */
const PULL_EXPIRES_MS = 60_000;
const HEARTBEAT_MS = 1_000;
/** The server removes a consumer that is idle for this long. A reader that pauses longer gets a new one. */
const INACTIVE_MS = 30_000;
const REOPEN_MS_BASE = 50;
const REOPEN_MS_MAX = 2_000;
/** Longest time that the reader waits for the removal of its consumer. */
const DELETE_MS_MAX = 2_000;
/** Time to open a consumer before the reader fails. */
const READ_UNAVAILABLE_MS = 60_000;

/** Creates a consumer; resolves with its name and the number of pending messages. */
export async function openConsumer(
  connection: Connection,
  reading: Pick<Reading, 'stream' | 'filter' | 'from' | 'signal'>,
  timeoutMs?: number,
) {
  const { stream, filter, from, signal } = reading;
  const config: Partial<ConsumerConfig> = {
    ack_policy: AckPolicy.None,
    replay_policy: ReplayPolicy.Instant,
    inactive_threshold: nanos(INACTIVE_MS),
    mem_storage: true,
    num_replicas: 1,
    ...startOf(from),
  };
  // With replicas each try uses a new name: if no answer comes, the consumer's server may be frozen, and a consumer with another name may
  // be placed on another server.
  const [firstName, isReplicated] = [readerName(), connection.replicas > 1];
  let used: string | undefined;
  let isOver = false;
  const create = async () => {
    const name = isReplicated ? readerName() : firstName;
    const created = await add(name);
    used ??= name;
    if (isOver || name !== used) void deleteConsumer(connection, stream, name);
    return created;
  };
  const add = (name: string) => {
    if (typeof filter === 'string') return connection.jsm.consumers.add(stream, { ...config, name, filter_subject: filter });
    // nats.js would leave the name out of the subject, and permissions could then not distinguish this request from others.
    const listed = { stream_name: stream, config: { ...config, name, filter_subjects: filter } };
    return connection.api<ConsumerInfo>(`CONSUMER.CREATE.${stream}.${name}`, listed);
  };
  try {
    const info = await retry(connection, `reading ${stream}`, create, { signal, ...(timeoutMs !== undefined && { timeoutMs }) });
    return { name: info.name, pending: info.num_pending };
  } catch (error) {
    isOver = true;
    if (used !== undefined) void deleteConsumer(connection, stream, used);
    throw error;
  }
}

function startOf(from: Reading['from']): Partial<ConsumerConfig> {
  if (from === 'last-per-subject') return { deliver_policy: DeliverPolicy.LastPerSubject };
  // Earlier times are replaced by 1970: the server cannot parse years before 0, and has stored nothing before 1970.
  if (from instanceof Date)
    return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: new Date(Math.max(0, from.getTime())).toISOString() };
  return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: Math.max(1, from) };
}

/** Not retried, because the server removes an idle consumer by itself. */
export async function deleteConsumer(connection: Connection, stream: string, name: string): Promise<void> {
  if (connection.connected) await connection.api(`CONSUMER.DELETE.${stream}.${name}`, {}, DELETE_MS_MAX).catch(() => {});
}

/**
 * Whether a message that was read has been replaced by another one with its sequence: after a loss of power the stream may have lost its
 * newest messages and reused their sequences. False if no message has the sequence, because a newer message of the subject or retention may
 * have removed it.
 */
export async function isReplaced(
  connection: Connection,
  stream: string,
  { seq, storedAt }: Pick<Delivery, 'seq' | 'storedAt'>,
  options: RetryOptions,
): Promise<boolean> {
  const get = () => connection.jsm.streams.getMessage(stream, { seq });
  const stored = await retry(connection, `reading ${stream}`, get, { ...options, readsFrom: stream });
  return stored !== null && stored.time.getTime() !== storedAt;
}

/**
 * Reads a stream in order through disposable consumers: in memory, without acks, on one server. A lost consumer (restart, gap,
 * slow reader) is replaced by one that begins after the last received message, so no message is lost, duplicated or out of order.
 *
 * Ends when `signal` aborts or the log is closed. Throws LogUnavailable when the stream cannot be read for READ_UNAVAILABLE_MS.
 */
export async function* readOrdered(connection: Connection, reading: Reading): AsyncGenerator<Batch, void> {
  let from = reading.from;
  const ended = AbortSignal.any([reading.signal, connection.closed]);
  for (let failures = 0; !ended.aborted; ) {
    let consumer: DisposableConsumer | undefined;
    try {
      if (reading.begin !== undefined && typeof from === 'number')
        from = await reading.begin(from, { signal: ended, timeoutMs: READ_UNAVAILABLE_MS });
      consumer = new DisposableConsumer(connection, { ...reading, from, signal: ended });
      await consumer.open();
      for await (const batch of consumer.batches()) {
        const last = batch.deliveries.at(-1);
        if (last) {
          from = last.seq + 1;
          failures = 0;
        }
        yield batch;
      }
    } catch (error) {
      if (ended.aborted && error instanceof LogUnavailable) break;
      throw error;
    } finally {
      await consumer?.close();
    }
    if (ended.aborted) break;
    const { filter, stream } = reading;
    connection.onEvent({
      type: 'reader-restarted',
      what: typeof filter === 'string' ? filter : `${filter.length} filters of ${stream}`,
    });
    if (reading.replacesLost === false) break;
    failures += 1;
    if (failures > 1) await pause(connection, backoffMs(failures, REOPEN_MS_BASE, REOPEN_MS_MAX), ended);
  }
  if (connection.closed.aborted && !reading.signal.aborted) throw new LogUnavailable('the log is closed');
}

class DisposableConsumer {
  readonly #connection: Connection;
  readonly #reading: Reading;
  #name: string | undefined;
  #inbox: PullInbox | undefined;
  #buffer: Delivery[] = [];
  #consumerSeq = 0;
  #newestBytes = 0;
  #idle = false;
  #upTo: number | undefined;
  #pulling = false;
  /** The next message is larger than a pull. */
  #isNextLarge = false;
  #lost = false;
  #wake: (() => void) | undefined;
  readonly #onAbort = () => this.#wake?.();
  #unlisten: (() => void) | undefined;

  constructor(connection: Connection, reading: Reading) {
    this.#connection = connection;
    this.#reading = reading;
  }

  async open(): Promise<void> {
    const { name } = await openConsumer(this.#connection, this.#reading, READ_UNAVAILABLE_MS);
    this.#name = name;
    const onDelivery = (delivery: Delivery) => {
      if (delivery.consumerSeq !== this.#consumerSeq + 1) this.#lose();
      if (this.#lost) return;
      this.#consumerSeq += 1;
      this.#newestBytes = delivery.msg.data.length;
      this.#buffer.push(delivery);
      this.#upTo = undefined;
      this.#wake?.();
    };
    const onIdle = (upTo: number) => {
      if (this.#lost || this.#reading.yieldsUpTo !== true) return;
      this.#upTo = upTo;
      this.#wake?.();
    };
    this.#inbox = new PullInbox(this.#connection, this.#reading.stream, name, onDelivery, onIdle);
    this.#reading.signal.addEventListener('abort', this.#onAbort);
    // The consumer may still exist. A server in lame duck mode removes its consumers without reporting it.
    this.#unlisten = this.#connection.onServerLeft(() => this.#lose());
  }

  /**
   * Ends when the consumer is lost or the signal aborts. Holds at most two pulls of messages: the one being yielded and the next. A message
   * that is larger than a pull is requested after the others have been taken.
   */
  async *batches(): AsyncGenerator<Batch, void> {
    while (!this.#reading.signal.aborted) {
      if (!this.#pulling && !this.#lost && !(this.#isNextLarge && this.#buffer.length > 0)) this.#pull();
      if (this.#buffer.length > 0 || this.#idle || this.#upTo !== undefined) {
        const [deliveries, idle, upTo] = [this.#buffer, this.#idle, this.#upTo];
        this.#buffer = [];
        this.#idle = false;
        this.#upTo = undefined;
        yield { deliveries, idle, ...(upTo !== undefined && { upTo }) };
      } else if (this.#lost && !this.#pulling) {
        return;
      } else {
        await new Promise<void>(resolve => {
          this.#wake = resolve;
        });
      }
    }
  }

  async close(): Promise<void> {
    this.#reading.signal.removeEventListener('abort', this.#onAbort);
    this.#unlisten?.();
    this.#lost = true;
    await this.#inbox?.close();
    if (this.#name) await deleteConsumer(this.#connection, this.#reading.stream, this.#name);
  }

  /** Ends the pull at once: while further messages arrive, the server sends no heartbeat, and the pull may last for a minute. */
  #lose(): void {
    this.#lost = true;
    void this.#inbox?.close();
  }

  #pull(): void {
    this.#pulling = true;
    const length = this.#reading.awaitsEnd?.()
      ? { expiresMs: SHORT_PULL_EXPIRES_MS }
      : { expiresMs: PULL_EXPIRES_MS, heartbeatMs: HEARTBEAT_MS };
    const { stream, bytesMax } = this.#reading;
    const { reads } = this.#connection;
    const receivedBefore = this.#consumerSeq;
    const isLarge = this.#isNextLarge;
    const pull = isLarge
      ? () => reads.run(stream, () => this.#inbox!.pull({ batch: 1, expiresMs: SHORT_PULL_EXPIRES_MS }))
      : () => this.#inbox!.pull({ batch: READ_BATCH, bytesMax, ...length });
    void pull().then(end => {
      this.#pulling = false;
      this.#isNextLarge = end === 'bytes' && this.#consumerSeq === receivedBefore;
      if (isLarge) reads.received(this.#newestBytes);
      if (end === 'lost') this.#lost = true;
      if (end === 'expired') this.#idle = true;
      this.#wake?.();
    });
  }
}
