import { type Owner, type Role, tenantQueueOf, workFilter, workSubject } from '@hopline/events';
import { BoundedMap, LogDenied } from '@hopline/log';
import type { Connection } from './connection.ts';
import { consumerName, type Queue } from './names.ts';
import { isConsumerNotFound } from './stream-requests.ts';

/**
 * All questions of this process about the items of one queue share an answer that is at most this old. Shorter than the wait before the
 * first question.
 */
const QUEUE_READ_MS = 500;
/** Number of items whose positions are remembered. Beyond it the oldest one is dropped. */
const POSITIONS_MAX = 20_000;
const READINGS_MAX = 4_096;

/** A queue at one time: the stream sequence up to which workers have its items, the number of items after it, and the end of the stream. */
type Reading = { takenSeq: number; pending: number; lastSeq: number };

/**
 * Estimates how many items wait before one. The queue reports how many items wait in total, and the sequence of the item shows its place.
 * Items of other queues lie in between, so the estimate assumes that they are spread evenly.
 */
export class QueuePlaces {
  readonly #connection: Connection;
  readonly #readings = new BoundedMap<string, { reading: Promise<Reading>; readAtMs: number; seq: number }>(READINGS_MAX);
  /** Stream sequences of items, by subject. */
  readonly #positions = new BoundedMap<string, number>(POSITIONS_MAX);
  /** True if the login lacks the permission. After a reconnect it may have it. */
  #isDenied = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.onReconnect(() => {
      this.#isDenied = false;
    });
  }

  /** Undefined if no item of the task waits, or if the login may not ask. */
  async ahead(role: Role, taskId: string, owner: Owner | undefined): Promise<number | undefined> {
    if (this.#isDenied) return undefined;
    try {
      const reading = await this.#recent(role, tenantQueueOf(owner));
      // Does not read the item's position, because most items are taken at once.
      if (reading.pending === 0) return undefined;
      const seq = await this.#positionOf(this.#connection.names.subject(workSubject(role, taskId, owner)), reading.takenSeq);
      if (seq === undefined) return undefined;
      const isNewer = seq > reading.lastSeq;
      return aheadOf(seq, isNewer ? await this.#recent(role, tenantQueueOf(owner), seq) : reading);
    } catch (error) {
      if (!(this.#connection.toDenied(error) instanceof LogDenied) && !(error instanceof LogDenied)) throw error;
      this.#isDenied = true;
      return undefined;
    }
  }

  /** A reading from the time when the item at `seq` was stored. */
  #recent(role: Role, queue: Queue, seq = 0): Promise<Reading> {
    const key = consumerName(role, queue);
    const nowMs = performance.now();
    const recent = this.#readings.get(key);
    if (recent !== undefined && nowMs - recent.readAtMs < QUEUE_READ_MS && recent.seq >= seq) return recent.reading;
    const reading = this.#read(role, queue);
    reading.catch(() => this.#readings.delete(key));
    this.#readings.set(key, { reading, readAtMs: nowMs, seq: Math.max(seq, recent?.seq ?? 0) });
    return reading;
  }

  async #read(role: Role, queue: Queue): Promise<Reading> {
    const { streams, names } = this.#connection;
    try {
      const { delivered, num_pending: pending } = await streams.consumer(role, queue);
      if (pending === 0) return { takenSeq: delivered.stream_seq, pending, lastSeq: delivered.stream_seq };
      const { state } = await streams.info(names.workStream);
      return { takenSeq: delivered.stream_seq, pending, lastSeq: state.last_seq };
    } catch (error) {
      if (!isConsumerNotFound(error)) throw error;
      // No worker has opened the queue yet, so all stored items wait.
      const { state } = await streams.info(names.workStream, names.subject(workFilter(role, queue)));
      const pending = Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
      return { takenSeq: state.first_seq - 1, pending, lastSeq: state.last_seq };
    }
  }

  /** The sequence of the task's newest item; undefined if workers have it. */
  async #positionOf(subject: string, takenSeq: number): Promise<number | undefined> {
    let seq = this.#positions.get(subject);
    if (seq === undefined) {
      const { jsm, names } = this.#connection;
      seq = (await jsm.streams.getMessage(names.workStream, { last_by_subj: subject }))?.seq ?? 0;
      if (seq > takenSeq) this.#positions.set(subject, seq);
    }
    if (seq > takenSeq) return seq;
    this.#positions.delete(subject);
    return undefined;
  }
}

function aheadOf(seq: number, { takenSeq, pending, lastSeq }: Reading): number {
  const share = (seq - takenSeq - 1) / Math.max(1, lastSeq - takenSeq);
  return Math.max(0, Math.min(pending - 1, Math.round(share * pending)));
}
