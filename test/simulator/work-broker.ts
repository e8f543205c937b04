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
  /** `requeues`: how many of the first `counted` deliveries do not count as attempts, because they were requeued or reached no worker. */
  counted: number;
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

type WorkBrokerOptions = DeliveryBounds & { ackWaitMs: number; duplicateWindowMs: number };

type WorkerAnswer = 'present' | 'gone' | undefined;

/** A worker as its siblings see it, with the items that its entry names. */
export type SimulatedWorker = {
  role: Role;
  /** The answer of a worker, or of the server in its place, as a sibling would see it now. */
  answer: () => WorkerAnswer;
  claims: Set<number>;
  /** Number of the newest entry. A repeated write may arrive after a later one, and then changes nothing. */
  entry: number;
  /** A sibling has found it dead and queued its items again. */
  isTaken: boolean;
  answeredAt: number;
  connectedAt: number;
};

/** How often siblings ask each other, and how long a worker without a connection counts as alive. */
const ASK_MS = 500;
const GONE_MS = 1_000;
/** An item that a worker has claimed is delivered again after this. */
export const CLAIM_MS = 120_000;

/**
 * The work stream and its consumers as JetStream runs them: an item without an acknowledgement or a keep-alive for `ackWaitMs` is delivered
 * again, even while its first worker still runs, and an id is a duplicate only within the window. (The queue of the in-memory log never
 * delivers an item twice at once.)
 */
export class WorkBroker {
  readonly #clock: VirtualClock;
  readonly options: WorkBrokerOptions;
  readonly #items = new Map<number, Item>();
  readonly #ids = new Map<string, number>();
  readonly #pulls = new Set<Pull>();
  readonly #workers = new Set<SimulatedWorker>();
  #seq = 0;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(clock: VirtualClock, options: WorkBrokerOptions) {
    this.#clock = clock;
    this.options = options;
  }

  get size(): number {
    return this.#items.size;
  }

  request(role: Role, work: Work, id: string, trace: TraceCarrier | undefined): { duplicate: boolean } {
    const { nowMs } = this.#clock;
    const storedAt = this.#ids.get(id);
    if (storedAt !== undefined && nowMs - storedAt < this.options.duplicateWindowMs) return { duplicate: true };
    this.#ids.set(id, nowMs);
    const seq = ++this.#seq;
    const times = { storedAt: EPOCH_MS + nowMs, readyAt: nowMs };
    this.#items.set(seq, {
      seq,
      role,
      json: JSON.stringify(work),
      trace,
      deliveries: 0,
      begun: 1,
      counted: 0,
      requeues: 0,
      ...times,
    });
    this.#deliver();
    return { duplicate: false };
  }

  hasItem(role: Role, taskId: string): boolean {
    return [...this.#items.values()].some(item => item.role === role && (JSON.parse(item.json) as Work).taskId === taskId);
  }

  /** Undefined if no item of the task waits for its first delivery. */
  ahead(role: Role, taskId: string): number | undefined {
    const waiting = [...this.#items.values()].filter(item => item.role === role && item.deliveries === 0);
    const place = waiting.findLastIndex(item => (JSON.parse(item.json) as Work).taskId === taskId);
    return place < 0 ? undefined : place;
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

  /** A worker begins. Its siblings watch it until it leaves. */
  enter(role: Role, answer: () => WorkerAnswer): SimulatedWorker {
    if (this.#workers.size === 0) this.#watch();
    const { nowMs } = this.#clock;
    const entry = { claims: new Set<number>(), entry: 0, isTaken: false };
    const worker = { role, answer, ...entry, answeredAt: nowMs, connectedAt: nowMs };
    this.#workers.add(worker);
    return worker;
  }

  leave(worker: SimulatedWorker): void {
    this.#workers.delete(worker);
  }

  /** Stores which items a worker runs. Returns false if a sibling has found it dead. */
  claim(worker: SimulatedWorker, entry: number, seqs: readonly number[]): boolean {
    if (worker.isTaken) return false;
    if (entry > worker.entry) Object.assign(worker, { entry, claims: new Set(seqs) });
    return true;
  }

  isClaimedElsewhere(worker: SimulatedWorker, seq: number): boolean {
    return [...this.#workers].some(other => other !== worker && other.claims.has(seq));
  }

  /** Like `-NAK` with a delay. It may come from a worker that no longer has the item. */
  extend(seq: number): void {
    const item = this.#items.get(seq);
    if (item !== undefined) item.readyAt = this.#clock.nowMs + CLAIM_MS;
  }

  /** One sibling represents all of them and asks every worker. */
  #watch(): void {
    this.#clock.as(undefined, () =>
      this.#clock.after(ASK_MS, () => {
        for (const worker of [...this.#workers]) this.#judge(worker);
        if (this.#workers.size > 0) this.#watch();
      }),
    );
  }

  #judge(worker: SimulatedWorker): void {
    const { nowMs } = this.#clock;
    const answer = worker.answer();
    if (answer === 'present') worker.answeredAt = nowMs;
    if (answer !== 'gone') worker.connectedAt = nowMs;
    const isDead = nowMs - worker.connectedAt >= GONE_MS || nowMs - worker.answeredAt >= this.options.ackWaitMs;
    const isSibling = (other: SimulatedWorker) => other !== worker && other.role === worker.role && other.answer() === 'present';
    if (!isDead || ![...this.#workers].some(isSibling)) return;
    worker.isTaken = true;
    this.#workers.delete(worker);
    for (const seq of worker.claims) this.nak(seq, 0);
  }

  begin(seq: number, delivery: number): void {
    const item = this.#items.get(seq);
    if (item === undefined) return;
    item.requeues += notBegun(item, delivery);
    item.counted = Math.max(item.counted, delivery - 1);
    item.begun = Math.max(item.begun, delivery);
  }

  hasBegunAfter(seq: number, delivery: number): boolean {
    return (this.#items.get(seq)?.begun ?? 0) > delivery;
  }

  countRequeue(seq: number, delivery: number): void {
    const item = this.#items.get(seq);
    if (item === undefined || item.counted >= delivery) return;
    item.requeues += 1;
    item.counted = delivery;
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
      const { seq, json, deliveries, storedAt, trace } = item;
      const requeues = Math.min(item.requeues + notBegun(item, deliveries), this.options.requeuesMax);
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

/** Earlier deliveries that are not counted yet and reached no worker, as `RequeueCounts` of packages/log-jetstream counts them. */
function notBegun({ begun, counted }: Item, delivery: number): number {
  return Math.max(0, delivery - 1 - Math.max(begun, counted));
}
