import { availableParallelism, cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** Files that run at any load. A test of a cluster waits for more than a third of its time, so that three nearly fill two cores. */
const ALWAYS = 3;
/** Files for each processor. With more, each of them only takes longer. */
const MAX_PER_PROCESSOR = 2.5;
/** Bounds the memory: a cluster takes about 0.5 GB. */
const MAX = 12;
/** How often the processors are looked at. A file that has just started shows its load in that time. */
const LOOK_MS = 1_000;
/** Processors that must be idle for another file to start. */
const IDLE_MIN = 0.4;

/** Total and idle milliseconds of all processors since the machine started. */
type ProcessorTimes = { total: number; idle: number };

export type SlotOptions = { always?: number; max?: number; lookMs?: number; idleProcessors?: () => number };

/**
 * Slots in which files run. A few may always run, and more while processors are idle, because many tests wait for most of their time. Slots
 * are given in the order in which they were asked for.
 */
export class ProcessorSlots {
  readonly #always: number;
  readonly #max: number;
  readonly #lookMs: number;
  readonly #idleProcessors: () => number;
  #running = 0;
  #waiting: (() => void)[] = [];
  #isLooking = false;

  constructor({
    always = ALWAYS,
    max = Math.max(ALWAYS, Math.min(MAX, Math.floor(MAX_PER_PROCESSOR * availableParallelism()))),
    lookMs = LOOK_MS,
    idleProcessors = createIdleProcessors(),
  }: SlotOptions = {}) {
    this.#always = always;
    this.#max = max;
    this.#lookMs = lookMs;
    this.#idleProcessors = idleProcessors;
  }

  /** Runs `work` once there is a slot. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.#take();
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#fill(this.#always);
    }
  }

  #take(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.#fill(this.#always);
    if (!this.#isLooking) void this.#look();
    return promise;
  }

  #fill(upTo: number): void {
    while (this.#running < upTo && this.#waiting.length > 0) {
      this.#running += 1;
      this.#waiting.shift()!();
    }
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    this.#idleProcessors();
    while (this.#waiting.length > 0) {
      await delay(this.#lookMs);
      const idle = this.#idleProcessors();
      if (idle >= IDLE_MIN) this.#fill(Math.min(this.#max, this.#running + Math.max(1, Math.floor(idle))));
    }
    this.#isLooking = false;
  }
}

/** Returns a function that returns how many processors were idle on average since its previous call. */
function createIdleProcessors(): () => number {
  let before = processorTimes();
  return () => {
    const now = processorTimes();
    const share = (now.idle - before.idle) / Math.max(1, now.total - before.total);
    before = now;
    return share * availableParallelism();
  };
}

function processorTimes(): ProcessorTimes {
  let [total, idle] = [0, 0];
  for (const { times } of cpus()) {
    idle += times.idle;
    total += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { total, idle };
}
