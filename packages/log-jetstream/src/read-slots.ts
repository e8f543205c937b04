import { PartySlots } from './turn-queue.ts';

const MIB = 1024 * 1024;
/**
 * Approximate number of bytes of records that may be on their way to one connection as answers to reads. nats-server closes a connection
 * when more than `max_pending` (64 MiB) wait for it, and answers about leases wait behind these bytes.
 */
const READS_BYTES_MAX = 16 * MIB;
/** Bytes of a page of several messages. Its last message may exceed them. */
export const PAGE_BYTES_MAX = MIB;
/** Number of reads that may always run at once, however large the records are: a stream that does not answer must not delay the others. */
const READS_MIN = 2;
/** Share of the reads that may be of one stream. */
const STREAM_SHARE = 0.75;
/** The expected size shrinks by this factor with each smaller answer. */
const DECAY = 0.98;

/**
 * Bounds the answers with records that are on their way to a connection. The size of a record is known only when it arrives, so the number
 * of concurrent requests assumes that each record is as large as the largest recent one.
 */
export class ReadSlots {
  #expectedBytes = PAGE_BYTES_MAX;
  readonly #slots = new PartySlots(READS_BYTES_MAX / PAGE_BYTES_MAX, STREAM_SHARE);

  /**
   * Sends one request to a stream, and resolves with its answer. Streams take turns. Rejects with LogUnavailable, without sending the request, when it has
   * waited `waitMsMax` for its turn.
   */
  run<T>(stream: string, request: () => Promise<T>, waitMsMax?: number): Promise<T> {
    return this.#slots.run(stream, request, waitMsMax === undefined ? undefined : { ms: waitMsMax, what: `reading ${stream}` });
  }

  /** An answer of this size has arrived. */
  received(bytes: number): void {
    this.#expectedBytes = Math.max(PAGE_BYTES_MAX, bytes, this.#expectedBytes * DECAY);
    this.#slots.resize(Math.max(READS_MIN, Math.floor(READS_BYTES_MAX / this.#expectedBytes)));
  }
}
