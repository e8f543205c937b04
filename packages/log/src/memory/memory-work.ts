import { type Owner, type Role, type TraceCarrier, tenantQueueOf, tenantTokenOf, type Work } from '@hopline/events';
import { backoffMs } from '../backoff.ts';
import { LogFull, Requeued, Superseded, TenantFull } from '../errors.ts';
import { FairSlots } from '../fair-slots.ts';
import { requireRecordId, requireRole, requireTaskId } from '../names.ts';
import {
  type DeliveryBounds,
  type Job,
  newestForJob,
  purposeOf,
  REDELIVERY_MS_BASE,
  REDELIVERY_MS_MAX,
  REDELIVERY_MS_MIN,
  type TakeOptions,
  TENANT_SLOTS_SHARE_DEFAULT,
  type WorkQueue,
} from '../work-queue.ts';
import { requireOpen } from './memory-records.ts';

type Item = {
  /** Counts like a stream sequence. */
  seq: number;
  id: string;
  role: Role;
  tenant: string | undefined;
  queue: number | undefined;
  json: string;
  trace?: TraceCarrier;
  deliveries: number;
  requeues: number;
  readyAt: number;
  storedAt: number;
  taken: boolean;
};

/** Items of all roles, which every simulated process sees. */
export class MemoryItems {
  readonly items: Item[] = [];
  readonly #ids = new Set<string>();
  readonly #listeners = new Set<() => void>();

  #seq = 0;

  /** Returns false if its id is known. */
  add(item: Omit<Item, 'seq'>): boolean {
    if (this.#ids.has(item.id)) return false;
    this.#ids.add(item.id);
    this.#seq += 1;
    this.items.push({ ...item, seq: this.#seq });
    this.changed();
    return true;
  }

  /** Simulates the end of the duplicate window. */
  forgetIds(): void {
    this.#ids.clear();
  }

  remove(item: Item): void {
    const index = this.items.indexOf(item);
    if (index >= 0) this.items.splice(index, 1);
  }

  /** Removes the items of a task, and returns their number. */
  erase(taskId: string): number {
    const items = this.items.filter(({ json }) => (JSON.parse(json) as Work).taskId === taskId);
    for (const item of items) this.remove(item);
    return items.length;
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

export type MemoryWorkOptions = DeliveryBounds & { ackWaitMs: number; roleItemsMax: number; tenantItemsMax: number };

/** The same time as for a real stream. The in-memory log forgets ids only when a test asks for it. */
const DUPLICATE_WINDOW_MS = 10 * 60_000;

export class MemoryWork implements WorkQueue {
  readonly duplicateWindowMs = DUPLICATE_WINDOW_MS;
  readonly #items: MemoryItems;
  readonly #options: MemoryWorkOptions;
  readonly #closed: AbortSignal;

  constructor(items: MemoryItems, options: MemoryWorkOptions, closed: AbortSignal) {
    this.#items = items;
    this.#options = options;
    this.#closed = closed;
  }

  async request(role: Role, work: Work, options: { id: string; trace?: TraceCarrier }): Promise<{ duplicate: boolean }> {
    requireRole(role);
    requireTaskId(work.taskId);
    const { id, trace } = options;
    requireRecordId(id);
    requireOpen(this.#closed);
    const fresh = { deliveries: 0, requeues: 0, readyAt: 0, storedAt: Date.now(), taken: false };
    const isAdded = this.#items.add({
      id,
      role,
      tenant: tenantTokenOf(work.owner),
      queue: tenantQueueOf(work.owner),
      json: JSON.stringify(work),
      ...fresh,
      ...(trace && { trace }),
    });
    return { duplicate: !isAdded };
  }

  async requireRoom(role: Role, owner?: Owner): Promise<void> {
    requireRole(role);
    requireOpen(this.#closed);
    const items = this.#items.items.filter(item => item.role === role);
    if (items.length >= this.#options.roleItemsMax) throw new LogFull(`${items.length} items of work wait for ${role}`);
    const tenant = tenantTokenOf(owner);
    if (tenant === undefined) return;
    const waiting = items.filter(item => item.tenant === tenant).length;
    if (waiting >= this.#options.tenantItemsMax) throw new TenantFull(`${waiting} items of work of one tenant wait for ${role}`);
  }

  async hasItem(role: Role, taskId: string): Promise<boolean> {
    requireRole(role);
    requireTaskId(taskId);
    requireOpen(this.#closed);
    return this.#items.items.some(item => item.role === role && (JSON.parse(item.json) as Work).taskId === taskId);
  }

  async ahead(role: Role, { taskId, owner }: Pick<Work, 'taskId' | 'owner'>): Promise<number | undefined> {
    requireRole(role);
    requireTaskId(taskId);
    requireOpen(this.#closed);
    const queue = tenantQueueOf(owner);
    const waiting = this.#items.items.filter(item => item.role === role && item.queue === queue && item.deliveries === 0);
    const place = waiting.findLastIndex(item => (JSON.parse(item.json) as Work).taskId === taskId);
    return place < 0 ? undefined : place;
  }

  async take(role: Role, options: TakeOptions, handler: (job: Job) => Promise<void>): Promise<void> {
    requireRole(role);
    const running = new Set<Promise<void>>();
    const { slots, signal, gate } = options;
    const tenantSlotsMax = Math.max(1, Math.floor(slots * TENANT_SLOTS_SHARE_DEFAULT));
    const fair = new FairSlots<number | undefined>(slots, queue => (queue === undefined ? slots : tenantSlotsMax), {
      isOpen: () => gate?.isOpen ?? true,
    });
    const unlisten = gate?.listen(() => this.#items.changed());
    while (!signal.aborted && !this.#closed.aborted) {
      const now = Date.now();
      const item = this.#next(role, fair, now);
      if (item) {
        const slot = fair.reserve(item.queue);
        const leaveSlot = () => {
          slot.release();
          this.#items.changed();
        };
        const inSlot = (job: Job) => handler({ ...job, leaveSlot });
        const job = this.#run(item, signal, inSlot).finally(() => {
          slot.release();
          running.delete(job);
        });
        running.add(job);
      } else {
        await this.#nextChange(role, signal, running, now);
      }
    }
    unlisten?.();
    await Promise.all(running);
  }

  /** The oldest item of the queue whose turn it is, among queues that have room. */
  #next(role: Role, slots: FairSlots<number | undefined>, now: number): Item | undefined {
    const isAlive = (item: Item) => purposeOf(item.deliveries + 1, item.requeues, this.#options) !== 'dead';
    let next: Item | undefined;
    for (const item of this.#items.items) {
      if (next !== undefined && !slots.precedes(item.queue, next.queue)) continue;
      if (item.role === role && !item.taken && item.readyAt <= now && isAlive(item) && slots.room(item.queue) > 0) next = item;
    }
    return next;
  }

  async #run(item: Item, signal: AbortSignal, handler: (job: Job) => Promise<void>): Promise<void> {
    item.taken = true;
    item.deliveries += 1;
    const { requeuesMax, ackWaitMs } = this.#options;
    const dead = new Promise<'dead'>(resolve => this.#closed.addEventListener('abort', () => resolve('dead'), { once: true }));
    const work = JSON.parse(item.json) as Work;
    const job: Job = {
      work,
      item: item.seq,
      attempt: item.deliveries,
      requeues: item.requeues,
      exhausted: purposeOf(item.deliveries, item.requeues, this.#options) === 'settle',
      ...newestForJob(work, item.deliveries, item.storedAt),
      ...(item.trace && { trace: item.trace }),
    };
    const settled = Promise.resolve()
      .then(() => handler(job))
      .then(
        () => 'done' as const,
        error => (error instanceof Superseded ? 'superseded' : error instanceof Requeued ? 'requeued' : 'rejected'),
      );
    const outcome = await Promise.race([settled, dead]);
    if (outcome === 'done') return this.#items.remove(item);
    item.taken = false;
    // A superseded handler neither acknowledges nor requeues its item. The in-memory log runs only one handler per item, so the item waits
    // as it would after a crash.
    if (outcome === 'requeued') item.requeues = Math.min(item.requeues + 1, requeuesMax);
    if (outcome === 'dead' || outcome === 'superseded') item.readyAt = Date.now() + ackWaitMs;
    else if (signal.aborted || outcome === 'requeued') item.readyAt = 0;
    else {
      const failures = item.deliveries - item.requeues;
      item.readyAt = Date.now() + backoffMs(failures, REDELIVERY_MS_BASE, REDELIVERY_MS_MAX, REDELIVERY_MS_MIN);
    }
    this.#items.changed();
  }

  /**
   * Resolves when an item is added or settled, a delayed one is due, a handler settles, or the worker stops. `now`: when the items were
   * examined. With a later time, no timer would be set for an item that became due in between, and its worker would wait for something
   * else.
   */
  async #nextChange(role: Role, signal: AbortSignal, running: Set<Promise<void>>, now: number): Promise<void> {
    const due = this.#items.items.filter(item => item.role === role && !item.taken && item.readyAt > now);
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const unlisten = this.#items.listen(wake);
    signal.addEventListener('abort', wake);
    this.#closed.addEventListener('abort', wake);
    const timer =
      due.length > 0 ? setTimeout(wake, Math.max(1, Math.min(...due.map(item => item.readyAt)) - Date.now())) : undefined;
    await Promise.race([promise, ...running]);
    clearTimeout(timer);
    unlisten();
    signal.removeEventListener('abort', wake);
    this.#closed.removeEventListener('abort', wake);
  }
}
