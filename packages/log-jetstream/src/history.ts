import { LogUnavailable } from '@hopline/log';
import type { Connection } from './connection.ts';
import { type Delivery, parseDelivery } from './delivery.ts';
import { deleteConsumer, openConsumer } from './ordered-reader.ts';
import { type PullEnd, PullInbox } from './pull-inbox.ts';
import { LoopTurns, type Party, PartySlots } from './turn-queue.ts';

/**
 * Reads the messages of a subject in pages, each with a consumer that lives for one pull. A slow client therefore never holds a
 * consumer, and 500 clients that replay at once do not need 500 consumers (which left 0.5 k/s of ingest, measured). A page costs
 * 0.4 ms more than another pull on the same consumer.
 */
const PAGE_RECORDS = 512;
/** Messages per page for readers of whole shards. There are few such readers, and a page costs six requests. */
const SHARD_PAGE_RECORDS = 4_096;
/** Messages of such a page that are decoded and yielded together. */
const BATCH_RECORDS = 256;
/** Pages that one process reads concurrently. */
const PAGES_AT_ONCE_MAX = 16;
/** Share of these pages that one party may read, as with the slots of a worker. */
const PARTY_PAGES_SHARE = 0.75;
/**
 * Records of a longer page that its reader receives in one turn of the event loop: decoding and sending them takes 1 to 2 ms. Whole pages
 * for each of 30 readers delayed everything else by a second (measured; 50 ms with turns).
 */
const RECORDS_PER_TURN = 16;
const PAGE_EXPIRES_MS = 2_000;
/** Empty pages before the read fails, because the replica that answers may lag behind the leader that named the tail. */
const EMPTY_PAGES_MAX = 5;

/** What is read: messages of a subject in a stream, up to a sequence. */
type Range = { stream: string; subject: string; tail: number };
/** A pull in progress. `ended` resolves after its last delivery. */
type OpenPage = { ended: Promise<PullEnd>; close(): Promise<void> };

export class HistoryReader {
  readonly #connection: Connection;
  readonly #bytesMax: number;
  readonly #slots = new PartySlots(PAGES_AT_ONCE_MAX, PARTY_PAGES_SHARE);
  readonly #turns = new LoopTurns();

  constructor(connection: Connection, bytesMax: number) {
    this.#connection = connection;
    this.#bytesMax = bytesMax;
  }

  /**
   * Messages of a subject in a stream from a sequence or time to the sequence `tail`, both inclusive. Parties that read at the same time take
   * turns.
   */
  async *read(stream: string, subject: string, from: number | Date, tail: number, party?: Party): AsyncGenerator<Delivery, void> {
    const range = { stream, subject, tail };
    for await (const page of this.#pages(range, from, next => this.#wholePage(range, next, party))) {
      for (const [index, delivery] of page.entries()) {
        if (page.length > RECORDS_PER_TURN && index % RECORDS_PER_TURN === 0) await this.#turns.next(party);
        yield delivery;
      }
    }
  }

  /**
   * Like `read`, but yields batches while the rest of the page arrives. A batch soon becomes garbage, whereas a whole page would outlive
   * the young generation of the heap. A slow reader holds a consumer but no slot, so it may read tasks meanwhile.
   */
  readBatches(stream: string, subject: string, from: number | Date, tail: number): AsyncGenerator<readonly Delivery[], void> {
    const range = { stream, subject, tail };
    return this.#pages(range, from, next => this.#arrivingPage(range, next));
  }

  async *#pages(
    range: Range,
    from: number | Date,
    page: (next: number | Date) => AsyncGenerator<readonly Delivery[], PullEnd>,
  ): AsyncGenerator<readonly Delivery[], void> {
    let next = from;
    const { tail } = range;
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

  async *#wholePage(range: Range, from: number | Date, party: Party): AsyncGenerator<readonly Delivery[], PullEnd> {
    const deliveries: Delivery[] = [];
    const end = await this.#slots.run(party, async () => {
      const page = await this.#open(range, from, PAGE_RECORDS, delivery => deliveries.push(delivery));
      const ended = await page.ended;
      await page.close();
      return ended;
    });
    if (deliveries.length > 0) yield deliveries;
    return end;
  }

  async *#arrivingPage(range: Range, from: number | Date): AsyncGenerator<readonly Delivery[], PullEnd> {
    let arrived: Delivery[] = [];
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
    onDelivery: (delivery: Delivery) => void,
  ): Promise<OpenPage> {
    const connection = this.#connection;
    const reading = { stream, filter: subject, from, signal: connection.closed };
    const { name, pending } = await openConsumer(connection, reading);
    const reached = Promise.withResolvers<PullEnd>();
    let consumerSeq = 0;
    const inbox = new PullInbox(connection, stream, name, msg => {
      const delivery = parseDelivery(msg);
      if (delivery?.consumerSeq !== consumerSeq + 1) return reached.resolve('lost');
      consumerSeq += 1;
      onDelivery(delivery);
      if (delivery.seq >= tail) reached.resolve('full');
    });
    const batch = Math.min(recordsMax, Math.max(1, pending));
    const pulled = inbox.pull({ batch, bytesMax: this.#bytesMax, expiresMs: PAGE_EXPIRES_MS });
    const close = async () => {
      await Promise.all([inbox.close(), deleteConsumer(connection, stream, name)]);
    };
    return { ended: Promise.race([pulled, reached.promise]), close };
  }

  /** Whether messages are left in the range; false if retention has removed the rest. */
  async #has({ stream, subject }: Range, from: number | Date): Promise<boolean> {
    const newest = await this.#connection.jsm.streams.getMessage(stream, { last_by_subj: subject }).catch(() => undefined);
    if (newest === undefined || newest === null) return newest === undefined;
    return from instanceof Date ? newest.time >= from : newest.seq >= from;
  }
}

/** Yields the batches up to `tail`. `onRead` gets the last sequence of each batch before it is yielded. */
async function* upTo(
  tail: number,
  batches: AsyncGenerator<readonly Delivery[], PullEnd>,
  onRead: (lastSeq: number) => void,
): AsyncGenerator<readonly Delivery[], PullEnd> {
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
