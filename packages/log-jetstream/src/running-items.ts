import type { Connection } from './connection.ts';
import { inProgress, later } from './item-replies.ts';
import type { Delivery } from './pull-inbox.ts';

/** Number of keep-alives within unclaimedWaitMs, so that one or two may be lost. */
const KEEP_ALIVES_PER_WAIT = 3;
/**
 * Number of renewals within claimMs. All items of a worker are renewed together, because each renewal makes the server look through all
 * items.
 */
const RENEWALS_PER_CLAIM = 2;
/** Renewals in one turn of the event loop. */
const RENEWALS_AT_ONCE_MAX = 512;

type RunningItem = {
  /** The newest delivery. Keep-alives and acks refer to it. */
  delivery: Delivery;
  takenAtMs: number;
  /** `claimed`: the entry of the worker names this delivery. `lost`: the entry named it, but another worker has queued the item again. */
  state: 'unclaimed' | 'claimed' | 'lost';
};

/**
 * The items whose handlers run in this process, by stream sequence. An item that its worker has claimed costs one message a minute; others
 * are kept alive one by one.
 *
 * A server that has lost the end of its work stream gives the sequence of a lost item to another item. Both may run at the same time, but
 * the server knows only the second one, and applies everything sent for that sequence to it.
 */
export class RunningItems {
  readonly #connection: Connection;
  readonly #claimMs: number;
  readonly #items = new Map<number, RunningItem>();
  readonly #onChange: () => void;
  readonly #timers: NodeJS.Timeout[];

  /**
   * `claimMs`: how long the server keeps a claimed item for its worker without a renewal. `onChange`: called when the items that this
   * worker should claim have changed.
   */
  constructor(
    connection: Connection,
    { unclaimedWaitMs, claimMs }: { unclaimedWaitMs: number; claimMs: number },
    onChange: () => void,
  ) {
    this.#connection = connection;
    this.#claimMs = Math.max(claimMs, unclaimedWaitMs);
    this.#onChange = onChange;
    const keepAliveMs = unclaimedWaitMs / KEEP_ALIVES_PER_WAIT;
    this.#timers = [
      setInterval(() => this.#keepAlive(keepAliveMs), keepAliveMs),
      setInterval(() => void this.renew(), this.#claimMs / RENEWALS_PER_CLAIM),
    ];
    connection.closed.addEventListener('abort', () => this.stop(), { once: true });
  }

  has(delivery: Delivery): boolean {
    return this.#find(delivery) !== undefined;
  }

  /** The newest delivery of an item. */
  newest(delivery: Delivery): Delivery | undefined {
    return this.#find(delivery)?.delivery;
  }

  /** Whether the item's sequence now belongs to another item, so that this worker must neither acknowledge nor return it. */
  isReplaced({ seq, storedAt }: Delivery): boolean {
    const item = this.#items.get(seq);
    return item !== undefined && item.delivery.storedAt !== storedAt;
  }

  /** Whether another worker has queued the item again, in which case this worker must not return it. */
  isLost(delivery: Delivery): boolean {
    return this.#find(delivery)?.state === 'lost';
  }

  isClaimed(delivery: Delivery): boolean {
    return this.#find(delivery)?.state === 'claimed';
  }

  /** Adds a delivery: the first one, or another one of a running item. */
  add(delivery: Delivery): void {
    const { takenAtMs = performance.now() } = this.#find(delivery) ?? {};
    // The map keeps the order in which the items were taken.
    if (this.isReplaced(delivery)) this.#items.delete(delivery.seq);
    this.#items.set(delivery.seq, { delivery, takenAtMs, state: 'unclaimed' });
    this.#onChange();
  }

  remove(delivery: Delivery): void {
    if (this.has(delivery)) this.#items.delete(delivery.seq);
  }

  /** The deliveries that the entry of this worker should name: at most `max` items that have run for `afterMs`, the oldest first. */
  claimable(afterMs: number, max: number): Delivery[] {
    const takenUntilMs = performance.now() - afterMs;
    const deliveries: Delivery[] = [];
    for (const { delivery, state, takenAtMs } of this.#items.values()) {
      if (deliveries.length === max) break;
      if (state === 'claimed' || (state === 'unclaimed' && takenAtMs <= takenUntilMs)) deliveries.push(delivery);
    }
    return deliveries;
  }

  /** When the worker took the oldest item that its entry does not name, on the clock of `performance.now`; undefined if there is none. */
  unclaimedSinceMs(): number | undefined {
    for (const { state, takenAtMs } of this.#items.values()) if (state === 'unclaimed') return takenAtMs;
    return undefined;
  }

  /** The stored entry names these deliveries. */
  claimed(deliveries: readonly Delivery[]): void {
    for (const delivery of deliveries) {
      const item = this.#items.get(delivery.seq);
      if (item?.delivery !== delivery || item.state !== 'unclaimed') continue;
      item.state = this.#extend(item) ? 'claimed' : 'unclaimed';
    }
  }

  /** Another worker has the item of a delivery. */
  lose(delivery: Delivery): void {
    const item = this.#items.get(delivery.seq);
    if (item?.delivery !== delivery) return;
    item.state = 'lost';
    this.#onChange();
  }

  /** Another worker has taken over the items that the entry named. */
  loseClaimed(): void {
    for (const item of this.#items.values()) if (item.state === 'claimed') item.state = 'lost';
  }

  /** Restarts the time for which the server keeps claimed items. */
  async renew(): Promise<void> {
    let left = RENEWALS_AT_ONCE_MAX;
    for (const item of [...this.#items.values()]) {
      if (item.state !== 'claimed' || this.#items.get(item.delivery.seq) !== item) continue;
      this.#extend(item);
      left -= 1;
      if (left > 0) continue;
      left = RENEWALS_AT_ONCE_MAX;
      await new Promise(resolve => setImmediate(resolve));
    }
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #find({ seq, storedAt }: Delivery): RunningItem | undefined {
    const item = this.#items.get(seq);
    return item?.delivery.storedAt === storedAt ? item : undefined;
  }

  #keepAlive(youngMs: number): void {
    const nowMs = performance.now();
    for (const { delivery, state, takenAtMs } of this.#items.values())
      if (state === 'unclaimed' && nowMs - takenAtMs >= youngMs) inProgress(this.#connection, delivery.msg);
  }

  /** Only a delayed return can set a time longer than the ack wait of the queue, which all versions share. */
  #extend({ delivery }: RunningItem): boolean {
    return later(this.#connection, delivery.msg, this.#claimMs);
  }
}
