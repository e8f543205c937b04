import { LogDenied, LogUnavailable } from '@hopline/log';
import { type Connection, REQUEST_TIMEOUT_MS } from './connection.ts';
import { type DirectGets, LAG_RETRY_MS, type StoredMessage } from './direct-gets.ts';
import { headersOf } from './message-headers.ts';
import { deleteConsumer, openConsumer } from './ordered-reader.ts';
import { type Delivery, type PullEnd, PullInbox } from './pull-inbox.ts';
import { PAGE_BYTES_MAX } from './read-slots.ts';
import { pause, retry } from './retry.ts';
import { LoopTurns, type Party, PartySlots, type WaitLimit } from './turn-queue.ts';

/** A message of the history, from a consumer or from a direct get. */
export type HistoryMessage = Pick<Delivery, 'msg' | 'seq' | 'storedAt'>;

/**
 * Reads the messages of a subject in pages. A page takes one direct get. It takes a consumer that lives for one pull if the server (before
 * 2.11) or the user's permissions do not allow direct gets, and for whole shards. A slow client therefore never holds a consumer, and 500
 * clients that replay at once do not need 500 consumers (which left 0.5 k/s of ingest, measured).
 */
const PAGE_RECORDS = 512;
/** Messages per page for readers of whole shards. There are few such readers, and a page costs six requests. */
const SHARD_PAGE_RECORDS = 4_096;
/** Messages of such a page that are decoded and yielded together. */
const BATCH_RECORDS = 256;
/** Pages that one process reads concurrently. */
const PAGES_AT_ONCE_MAX = 16;
/** Share of these pages that one party may read, like its share of a worker's slots. */
const PARTY_PAGES_SHARE = 0.75;
/**
 * Records of a longer page that its reader receives in one turn of the event loop: decoding and sending them takes 1 to 2 ms. Whole pages
 * for each of 30 readers delayed everything else by a second (measured; 50 ms with turns).
 */
const RECORDS_PER_TURN = 16;
const PAGE_EXPIRES_MS = 2_000;
/** Number of empty pages before the read fails: the replica that answers may lag behind the leader that named the tail. */
const EMPTY_PAGES_MAX = 5;

/** The messages to read: those of a subject in a stream, up to a sequence. */
type Range = { stream: string; subject: string; tail: number };

/** A pull in progress. `ended` resolves after its last delivery. */
type OpenPage = { ended: Promise<PullEnd>; close(): Promise<void> };

export class HistoryReader {
  readonly #connection: Connection;
  readonly #slots = new PartySlots(PAGES_AT_ONCE_MAX, PARTY_PAGES_SHARE);
  readonly #turns = new LoopTurns();
  readonly #directGets: DirectGets | undefined;
  /** The user lacks the permission for direct gets, because the server's configuration is older than this version. */
  #isDirectDenied = false;

  /** `directGets`: absent for streams whose readers use consumers. */
  constructor(connection: Connection, directGets?: DirectGets) {
    this.#connection = connection;
    this.#directGets = directGets;
  }

  /**
   * Messages of a subject in a stream from a sequence or time to the sequence `tail`, both inclusive. Parties that read at the same time take
   * turns.
   */
  async *read(
    stream: string,
    subject: string,
    from: number | Date,
    tail: number,
    party?: Party,
  ): AsyncGenerator<HistoryMessage, void> {
    const range = { stream, subject, tail };
    for await (const page of this.#pages(range, from, next => this.#wholePage(range, next, party))) {
      for (const [index, delivery] of page.entries()) {
        if (page.length > RECORDS_PER_TURN && index % RECORDS_PER_TURN === 0) await this.#turns.next(party);
        yield delivery;
      }
    }
  }

  /**
   * Yields the messages of a subject from `from` to the newest without first asking which one that is, and returns the sequence up to which
   * all were read. If that is not possible, because with several replicas only the leader knows the newest one, it yields nothing and
   * returns undefined.
   */
  async *readToEnd(
    stream: string,
    subject: string,
    from: number,
    party?: Party,
  ): AsyncGenerator<HistoryMessage, number | undefined> {
    if (this.#connection.replicas > 1) return undefined;
    for (let next = from; ; ) {
      const page = await this.#slots.run(party, () => this.#following(stream, subject, next), waitLimit(stream));
      const last = page?.messages.at(-1);
      if (page === undefined || last === undefined) return next === from ? undefined : next - 1;
      for (const [index, message] of page.messages.entries()) {
        if (page.messages.length > RECORDS_PER_TURN && index % RECORDS_PER_TURN === 0) await this.#turns.next(party);
        yield message;
      }
      next = last.seq + 1;
      if (page.isLast) return last.seq;
    }
  }

  /**
   * Like `read`, but yields batches while the rest of the page arrives. A batch is garbage soon, whereas a whole page would outlive the
   * young generation of the heap. A slow reader holds a consumer but no slot, so its caller may read tasks in between.
   */
  readBatches(
    stream: string,
    subject: string,
    from: number | Date,
    tail: number,
  ): AsyncGenerator<readonly HistoryMessage[], void> {
    const range = { stream, subject, tail };
    return this.#pages(range, from, next => this.#arrivingPage(range, next));
  }

  async *#pages(
    range: Range,
    from: number | Date,
    page: (next: number | Date) => AsyncGenerator<readonly HistoryMessage[], PullEnd>,
  ): AsyncGenerator<readonly HistoryMessage[], void> {
    const { tail } = range;
    let next = from;
    for (let emptyPages = 0; tail > 0 && (next instanceof Date || next <= tail); ) {
      const begin = next;
      const end = yield* upTo(tail, page(begin), seq => {
        next = seq + 1;
      });
      if (next !== begin) emptyPages = 0;
      else if (end === 'expired' && !(await this.#has(range, next))) return;
      else if (++emptyPages >= EMPTY_PAGES_MAX)
        throw new LogUnavailable('the replica that answers lacks the newest records of the task');
    }
  }

  async *#wholePage(range: Range, from: number | Date, party: Party): AsyncGenerator<readonly HistoryMessage[], PullEnd> {
    const deliveries: HistoryMessage[] = [];
    const end = await this.#slots.run(
      party,
      async () => {
        const direct = await this.#directPage(range, from);
        if (direct !== undefined) {
          deliveries.push(...direct.messages);
          return direct.end;
        }
        const page = await this.#open(range, from, PAGE_RECORDS, delivery => deliveries.push(delivery));
        const ended = await page.ended;
        await page.close();
        return ended;
      },
      waitLimit(range.stream),
    );
    if (deliveries.length > 0) yield deliveries;
    return end;
  }

  /** Undefined if the page needs a consumer. */
  async #directPage(range: Range, from: number | Date): Promise<{ messages: HistoryMessage[]; end: PullEnd } | undefined> {
    if (from instanceof Date) return undefined;
    for (const untilMs = performance.now() + PAGE_EXPIRES_MS; ; ) {
      const page = await this.#following(range.stream, range.subject, from);
      if (page === undefined) return undefined;
      if (page.messages.length > 0) return { messages: page.messages, end: 'full' };
      if (performance.now() >= untilMs || !(await this.#has(range, from))) return { messages: [], end: 'expired' };
      await pause(this.#connection, LAG_RETRY_MS, this.#connection.closed);
    }
  }

  /** One direct get; undefined if the server or the permissions of the user do not allow it. */
  async #following(
    stream: string,
    subject: string,
    from: number,
  ): Promise<{ messages: HistoryMessage[]; isLast: boolean } | undefined> {
    const directGets = this.#directGets;
    if (directGets === undefined || !directGets.hasBatches || this.#isDirectDenied) return undefined;
    const request = { subject, from, recordsMax: PAGE_RECORDS, bytesMax: PAGE_BYTES_MAX };
    try {
      const { messages, isLast } = await directGets.following(stream, request);
      return { messages: messages.map(historyMessageOf), isLast };
    } catch (error) {
      if (!(error instanceof LogDenied)) throw error;
      this.#isDirectDenied = true;
      return undefined;
    }
  }

  async *#arrivingPage(range: Range, from: number | Date): AsyncGenerator<readonly HistoryMessage[], PullEnd> {
    let arrived: HistoryMessage[] = [];
    let ready = Promise.withResolvers<void>();
    let end: PullEnd | undefined;
    const page = await this.#open(range, from, SHARD_PAGE_RECORDS, delivery => {
      if (arrived.push(delivery) >= BATCH_RECORDS) ready.resolve();
    });
    void page.ended.then(ended => {
      end = ended;
      ready.resolve();
    });
    try {
      for (;;) {
        await ready.promise;
        ready = Promise.withResolvers();
        const batch = arrived;
        arrived = [];
        if (batch.length > 0) yield batch;
        if (end !== undefined && arrived.length === 0) return end;
        if (end !== undefined || arrived.length >= BATCH_RECORDS) ready.resolve();
      }
    } finally {
      await page.close();
    }
  }

  /** Pulls one page, which ends at `tail` or at the first message after it. `onDelivery` is called in order. */
  async #open(
    { stream, subject, tail }: Range,
    from: number | Date,
    recordsMax: number,
    onDelivery: (delivery: HistoryMessage) => void,
  ): Promise<OpenPage> {
    const connection = this.#connection;
    const reading = { stream, filter: subject, from, signal: connection.closed };
    const { name, pending } = await openConsumer(connection, reading);
    const reached = Promise.withResolvers<PullEnd>();
    let consumerSeq = 0;
    let bytes = 0;
    const inbox = new PullInbox(connection, stream, name, delivery => {
      if (delivery.consumerSeq !== consumerSeq + 1) return reached.resolve('lost');
      consumerSeq += 1;
      bytes += delivery.msg.data.length;
      onDelivery(delivery);
      if (delivery.seq >= tail) reached.resolve('full');
    });
    const batch = Math.min(recordsMax, Math.max(1, pending));
    const pulled = connection.reads.run(stream, async () => {
      const end = await inbox.pull({ batch, bytesMax: PAGE_BYTES_MAX, expiresMs: PAGE_EXPIRES_MS });
      const isLarge = end === 'bytes' && consumerSeq === 0;
      const pullEnd = isLarge ? await inbox.pull({ batch: 1, expiresMs: PAGE_EXPIRES_MS }) : end;
      connection.reads.received(bytes);
      return pullEnd;
    });
    const close = async () => {
      await Promise.all([inbox.close(), deleteConsumer(connection, stream, name)]);
    };
    return { ended: Promise.race([pulled, reached.promise]), close };
  }

  /** Whether the range has further messages; false if retention has removed the rest. */
  async #has({ stream, subject }: Range, from: number | Date): Promise<boolean> {
    const { jsm } = this.#connection;
    const get = () => jsm.streams.getMessage(stream, { last_by_subj: subject });
    const newest = await retry(this.#connection, `reading ${stream}`, get, { readsFrom: stream });
    if (newest === null) return false;
    return from instanceof Date ? newest.time >= from : newest.seq >= from;
  }
}

function waitLimit(stream: string): WaitLimit {
  return { ms: REQUEST_TIMEOUT_MS, what: `reading ${stream}` };
}

function historyMessageOf({ seq, msg }: StoredMessage): HistoryMessage {
  return { msg, seq, storedAt: Date.parse(headersOf(msg)?.get('Nats-Time-Stamp') ?? '') };
}

/** Yields the batches up to `tail`. Before each batch, `onRead` receives its last sequence. */
async function* upTo(
  tail: number,
  batches: AsyncGenerator<readonly HistoryMessage[], PullEnd>,
  onRead: (lastSeq: number) => void,
): AsyncGenerator<readonly HistoryMessage[], PullEnd> {
  try {
    for (let next = await batches.next(); ; next = await batches.next()) {
      if (next.done === true) return next.value;
      const lastSeq = next.value.at(-1)!.seq;
      onRead(lastSeq);
      yield lastSeq > tail ? next.value.filter(({ seq }) => seq <= tail) : next.value;
    }
  } finally {
    await batches.return('lost');
  }
}
