import { AsyncLocalStorage } from 'node:async_hooks';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import type { Random } from './random.ts';

/** Epoch milliseconds at which every run begins. */
export const EPOCH_MS = Date.UTC(2030, 0, 1);

/**
 * A process of the simulated machine room. Timers and answers of the log belong to the process whose code started them. A frozen process
 * gets them when it continues, as after SIGCONT; a killed process never does.
 */
export class VirtualProcess {
  readonly name: string;
  state: 'running' | 'frozen' | 'dead' = 'running';
  /** How far its wall clock is ahead of true time, in milliseconds. The monotonic clock is not affected. */
  wallClockOffsetMs = 0;
  /** Timers that fell due while it was frozen. */
  readonly overdue: Timer[] = [];

  constructor(name: string) {
    this.name = name;
  }
}

/** A timer. `setTimeout` also returns it to production code. */
class Timer {
  readonly process: VirtualProcess | undefined;
  readonly callback: () => void;
  readonly repeatMs: number | undefined;
  readonly #onRefresh: (timer: Timer) => void;
  dueAt: number;
  order: number;
  isCleared = false;
  /** Set by `refresh` while it waits: when it falls due instead. */
  putOff: { dueAt: number; order: number } | undefined;
  isWaiting = false;

  constructor(
    dueAt: number,
    order: number,
    callback: () => void,
    repeatMs: number | undefined,
    onRefresh: (timer: Timer) => void,
  ) {
    this.process = currentProcess.getStore();
    this.dueAt = dueAt;
    this.order = order;
    this.callback = callback;
    this.repeatMs = repeatMs;
    this.#onRefresh = onRefresh;
  }

  clear(): void {
    this.isCleared = true;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    if (!this.isCleared) this.#onRefresh(this);
    return this;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}

const currentProcess = new AsyncLocalStorage<VirtualProcess>();

const realSetImmediate = globalThis.setImmediate;

/** Number of events after which the real event loop runs once, to serve signals and the parent process. */
const EVENTS_PER_REAL_TURN = 20_000;

/**
 * Virtual time: while it is installed, timers, clocks and randomness of the whole process follow from the seed. Time passes only between
 * events, and an event begins when all promise reactions of the previous event have run. ADR 0045 has the reasons.
 */
export class VirtualClock {
  readonly #random: Random;
  /** A binary heap by due time, then by order of creation. */
  readonly #timers: Timer[] = [];
  #nowMs = 0;
  #order = 0;
  #restore: (() => void) | undefined;
  events = 0;
  /** Called when the callback of a timer throws: in production that ends the process. */
  onThrow: (process: VirtualProcess | undefined, error: unknown) => void = (_process, error) => {
    throw error;
  };

  constructor(random: Random) {
    this.#random = random;
  }

  /** Milliseconds since the start of the run. */
  get nowMs(): number {
    return this.#nowMs;
  }

  get pendingTimers(): number {
    return this.#timers.reduce((count, { isCleared }) => (isCleared ? count : count + 1), 0);
  }

  /** Runs `action` as code of a process, or without one as the outside world, which neither freezes nor dies. */
  as<T>(process: VirtualProcess | undefined, action: () => T): T {
    if (process === currentProcess.getStore()) return action();
    return process === undefined ? currentProcess.exit(action) : currentProcess.run(process, action);
  }

  get process(): VirtualProcess | undefined {
    return currentProcess.getStore();
  }

  /** Calls back in the current process. */
  after(ms: number, callback: () => void, repeatMs?: number): Timer {
    const refresh = (timer: Timer) => {
      const due = { dueAt: this.#nowMs + ms, order: this.#order++ };
      if (timer.isWaiting) timer.putOff = due;
      else this.#push(Object.assign(timer, due));
    };
    const timer = new Timer(this.#nowMs + ms, this.#order++, callback, repeatMs, refresh);
    this.#push(timer);
    return timer;
  }

  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.after(ms, resolve));
  }

  freeze(process: VirtualProcess): void {
    if (process.state === 'running') process.state = 'frozen';
  }

  thaw(process: VirtualProcess): void {
    if (process.state !== 'frozen') return;
    process.state = 'running';
    for (const timer of process.overdue.splice(0)) {
      timer.putOff = undefined;
      timer.dueAt = this.#nowMs;
      timer.order = this.#order++;
      this.#push(timer);
    }
  }

  /** Runs events in order until `isDone`, or until the given time; returns whether `isDone` ended it. */
  async run(isDone: () => boolean, untilMs: number): Promise<boolean> {
    await reactionsRun();
    while (!isDone()) {
      const timer = this.#pop();
      if (timer === undefined) return false;
      if (timer.dueAt > untilMs) {
        this.#push(timer);
        this.#nowMs = untilMs;
        return isDone();
      }
      this.#nowMs = Math.max(this.#nowMs, timer.dueAt);
      this.#fire(timer);
      await reactionsRun();
      if (++this.events % EVENTS_PER_REAL_TURN === 0) await new Promise(resolve => realSetImmediate(resolve));
    }
    return true;
  }

  /** Runs events until a promise of the outside world is settled. */
  async runUntilSettled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    await this.run(() => isSettled, Number.POSITIVE_INFINITY);
    return promise;
  }

  #fire(timer: Timer): void {
    const { process } = timer;
    if (process?.state === 'dead') return;
    if (process?.state === 'frozen') {
      process.overdue.push(timer);
      timer.isWaiting = true;
      return;
    }
    if (timer.repeatMs !== undefined) {
      timer.dueAt = this.#nowMs + timer.repeatMs;
      timer.order = this.#order++;
      this.#push(timer);
    }
    try {
      this.as(process, timer.callback);
    } catch (error) {
      this.onThrow(process, error);
    }
  }

  #push(timer: Timer): void {
    const heap = this.#timers;
    timer.isWaiting = true;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isEarlier(timer, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = timer;
  }

  #pop(): Timer | undefined {
    for (;;) {
      const timer = this.#popAny();
      if (timer === undefined) return undefined;
      timer.isWaiting = false;
      if (timer.isCleared) continue;
      if (timer.putOff === undefined) return timer;
      this.#push(Object.assign(timer, timer.putOff, { putOff: undefined }));
    }
  }

  #popAny(): Timer | undefined {
    const heap = this.#timers;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isEarlier(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isEarlier(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }

  /** Replaces the timers, clocks and randomness of this process until `uninstall`. */
  install(): void {
    const replaced: (() => void)[] = [];
    const replace = <T extends object>(target: T, members: object) => {
      for (const [name, value] of Object.entries(members)) {
        const before = Object.getOwnPropertyDescriptor(target, name);
        Object.defineProperty(target, name, { value, configurable: true, writable: true });
        replaced.push(() =>
          before === undefined ? Reflect.deleteProperty(target, name) : Object.defineProperty(target, name, before),
        );
      }
    };
    resetUuids(replace);
    replace(globalThis, this.#timerFunctions());
    replace(timersPromises, {
      setTimeout: (ms = 1, value?: unknown, { signal }: { signal?: AbortSignal } = {}) => this.#abortableSleep(ms, value, signal),
      setImmediate: (value?: unknown, { signal }: { signal?: AbortSignal } = {}) => this.#abortableSleep(0, value, signal),
      setInterval: () => {
        throw new Error('setInterval of node:timers/promises is not simulated');
      },
    });
    replace(AbortSignal, { timeout: (ms: number) => this.#timeoutSignal(ms) });
    replace(Date, { now: () => EPOCH_MS + Math.floor(this.#nowMs) + (currentProcess.getStore()?.wallClockOffsetMs ?? 0) });
    replace(performance, { now: () => this.#nowMs, timeOrigin: EPOCH_MS });
    replace(Math, { random: () => this.#random.next() });
    replace(crypto, { randomUUID: () => this.#uuid(), randomBytes: (size: number) => this.#fill(Buffer.alloc(size)) });
    replace(globalThis.crypto, { getRandomValues: <T extends ArrayBufferView>(view: T) => this.#fill(view) });
    // Updates the named imports of built-in modules.
    syncBuiltinESMExports();
    this.#restore = () => {
      for (const undo of replaced.reverse()) undo();
      syncBuiltinESMExports();
    };
  }

  uninstall(): void {
    this.#restore?.();
    this.#restore = undefined;
  }

  #timerFunctions(): object {
    const clear = (timer: Timer | undefined) => timer?.clear();
    const atLeast1 = (ms: unknown) => Math.max(1, Number(ms) || 1);
    return {
      setTimeout: (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
        this.after(atLeast1(ms), () => callback(...args)),
      setInterval: (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
        this.after(atLeast1(ms), () => callback(...args), atLeast1(ms)),
      setImmediate: (callback: (...args: unknown[]) => void, ...args: unknown[]) => this.after(0, () => callback(...args)),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    };
  }

  #abortableSleep(ms: number, value: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        timer.clear();
        reject(new DOMException('The operation was aborted', 'AbortError'));
      };
      const timer = this.after(Math.max(ms, ms === 0 ? 0 : 1), () => {
        signal?.removeEventListener('abort', abort);
        resolve(value);
      });
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  }

  #timeoutSignal(ms: number): AbortSignal {
    const controller = new AbortController();
    this.after(ms, () => controller.abort(new DOMException('The operation timed out', 'TimeoutError')));
    return controller.signal;
  }

  #uuid(): string {
    const hex = (digits: number) =>
      Array.from({ length: digits / 4 }, () => this.#random.between(0, 0xffff).toString(16).padStart(4, '0')).join('');
    return `${hex(8)}-${hex(4)}-4${hex(4).slice(1)}-8${hex(4).slice(1)}-${hex(12)}`;
  }

  #fill<T extends ArrayBufferView>(view: T): T {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    for (let at = 0; at < bytes.length; at++) bytes[at] = this.#random.between(0, 255);
    return view;
  }
}

function isEarlier(one: Timer, other: Timer): boolean {
  return one.dueAt < other.dueAt || (one.dueAt === other.dueAt && one.order < other.order);
}

/** Resolves when all due promise reactions have run, because the microtask queue is emptied before the next tick. */
function reactionsRun(): Promise<void> {
  return new Promise(resolve => queueMicrotask(() => process.nextTick(resolve)));
}

/**
 * `uuidv7` keeps a clock, a counter and unused random numbers between calls. Before each run, ids are made with a clock a year ahead until
 * it asks for new random numbers. Every run then finds the same state, and the jump back to EPOCH_MS resets clock and counter.
 */
function resetUuids(replace: (target: object, members: object) => void): void {
  let refills = 0;
  replace(Date, { now: () => EPOCH_MS + 365 * 24 * 60 * 60_000 });
  replace(globalThis.crypto, {
    getRandomValues: (view: Uint32Array) => {
      refills += 1;
      return view.fill(7);
    },
  });
  uuidv7();
  for (refills = 0; refills === 0; ) uuidv7();
}
