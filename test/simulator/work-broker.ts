import type { Role, TraceCarrier, Work } from '@hopline/events';
import { type DeliveryBounds, deliveriesMax } from '@hopline/log';
import { EPOCH_MS, type VirtualClock } from './virtual-clock.ts';

type Item = {
  seq: number;
  role: Role;
  json: string;
  trace: TraceCarrier | undefined;
  deliveries: number;
  /** The newest delivery that a worker has begun. */
  begun: number;
  requeues: number;
  storedAt: number;
  /** When it may be delivered (again): at once, after a wait, or when its acknowledgement is overdue. */
  readyAt: number;
};

export type Delivery = {
  seq: number;
  work: Work;
  deliveries: number;
  requeues: number;
  storedAt: number;
  trace: TraceCarrier | undefined;
};

type Pull = { role: Role; deliver: (delivery: Delivery) => void; expiresAt: number };

export type WorkBrokerOptions = DeliveryBounds & { ackWaitMs: number; duplicateWindowMs: number };

/**
 * The work stream and its consumers as JetStream runs them: an item without an acknowledgement or a keep-alive for `ackWaitMs` is
 * delivered again, also while its first worker still runs, and an id is a duplicate only within the window. (The queue of the
 * memory log never delivers an item twice at once.)
 */
export class WorkBroker {
  readonly #clock: VirtualClock;
  readonly options: WorkBrokerOptions;
  readonly #items = new Map<number, Item>();
  readonly #ids = new Map<string, number>();
  readonly #pulls = new Set<Pull>();
  #seq = 0;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(clock: VirtualClock, options: WorkBrokerOptions) {
    this.#clock = clock;
    this.options = options;
  }

  get size(): number {
    return this.#items.size;
  }

  request(role: Role, work: Work, id: string, trace: TraceCarrier | undefined): void {
    const { nowMs } = this.#clock;
    const storedAt = this.#ids.get(id);
    if (storedAt !== undefined && nowMs - storedAt < this.options.duplicateWindowMs) return;
    this.#ids.set(id, nowMs);
    const seq = ++this.#seq;
    const times = { storedAt: EPOCH_MS + nowMs, readyAt: nowMs };
    this.#items.set(seq, { seq, role, json: JSON.stringify(work), trace, deliveries: 0, begun: 0, requeues: 0, ...times });
    this.#deliver();
  }

  hasItem(role: Role, taskId: string): boolean {
    return [...this.#items.values()].some(item => item.role === role && (JSON.parse(item.json) as Work).taskId === taskId);
  }

  /** Asks for one item. Returns a function that withdraws the request. */
  pull(role: Role, expiresMs: number, deliver: (delivery: Delivery) => void): () => void {
    const pull = { role, deliver, expiresAt: this.#clock.nowMs + expiresMs };
    this.#pulls.add(pull);
    this.#deliver();
    return () => this.#pulls.delete(pull);
  }

  done(seq: number): void {
    this.#items.delete(seq);
  }

  keepAlive(seq: number): void {
    const item = this.#items.get(seq);
    if (item !== undefined) item.readyAt = this.#clock.nowMs + this.options.ackWaitMs;
  }

  begin(seq: number, delivery: number): void {
    const item = this.#items.get(seq);
    if (item !== undefined) item.begun = Math.max(item.begun, delivery);
  }

  hasBegunAfter(seq: number, delivery: number): boolean {
    return (this.#items.get(seq)?.begun ?? 0) > delivery;
  }

  countRequeue(seq: number): void {
    const item = this.#items.get(seq);
    if (item !== undefined) item.requeues = Math.min(item.requeues + 1, this.options.requeuesMax);
  }

  /** Asks for another delivery after `waitMs`. As in JetStream, a worker that no longer has the item may also ask. */
  nak(seq: number, waitMs: number): void {
    const item = this.#items.get(seq);
    if (item === undefined) return;
    item.readyAt = this.#clock.nowMs + waitMs;
    this.#deliver();
  }

  #deliver(): void {
    const { nowMs } = this.#clock;
    for (const pull of this.#pulls) {
      if (pull.expiresAt <= nowMs) this.#pulls.delete(pull);
      else this.#serve(pull, nowMs);
    }
    this.#wakeLater();
  }

  #serve(pull: Pull, nowMs: number): void {
    const limit = deliveriesMax(this.options);
    for (const item of this.#items.values()) {
      if (item.role !== pull.role || item.readyAt > nowMs || item.deliveries >= limit) continue;
      this.#pulls.delete(pull);
      item.deliveries += 1;
      item.readyAt = nowMs + this.options.ackWaitMs;
      const { seq, json, deliveries, requeues, storedAt, trace } = item;
      pull.deliver({ seq, work: JSON.parse(json) as Work, deliveries, requeues, storedAt, trace });
      return;
    }
  }

  #wakeLater(): void {
    const { nowMs } = this.#clock;
    let next = Number.POSITIVE_INFINITY;
    for (const { readyAt, deliveries } of this.#items.values())
      if (deliveries < deliveriesMax(this.options) && readyAt > nowMs) next = Math.min(next, readyAt);
    if (next >= this.#wakeAt && this.#wakeAt > nowMs) return;
    this.#wakeAt = next;
    if (next === Number.POSITIVE_INFINITY) return;
    this.#clock.as(undefined, () => this.#clock.after(next - nowMs, () => this.#deliver()));
  }
}
