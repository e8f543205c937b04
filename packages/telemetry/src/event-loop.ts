import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks';

/**
 * Milliseconds between two samples of the event-loop delay. Each sample is a timer of the runtime, which runs no JavaScript but wakes an
 * idle process: at an interval of 10 ms it took 3.2 ms of CPU per second, at 50 ms it takes 0.7 ms.
 */
const DELAY_RESOLUTION_MS = 50;
/**
 * Figures cover a window of at least this length, so that one reader (`hopline top`, a second Prometheus) does not hide them from another.
 */
export const EVENT_LOOP_WINDOW_MS = 30_000;
/**
 * Number of samples below which the percentiles of a window that has just begun are not used, because the longest of a few samples is not
 * their p99.
 */
const SAMPLES_MIN = 100;
const NANOS_PER_S = 1e9;

type Delays = { readonly p50: number; readonly p99: number; readonly max: number };
const NO_DELAY: Delays = { p50: 0, p99: 0, max: 0 };

type DelayHistogram = Pick<
  ReturnType<typeof monitorEventLoopDelay>,
  'count' | 'max' | 'percentile' | 'reset' | 'enable' | 'disable'
>;

type EventLoopOptions = {
  histogram?: DelayHistogram;
  now?: () => number;
  utilization?: typeof performance.eventLoopUtilization;
};

/** Delay and utilization of the event loop over the last one to two EVENT_LOOP_WINDOW_MS, or since the last read if that is longer ago. */
export class EventLoop {
  readonly #histogram: DelayHistogram;
  readonly #now: () => number;
  readonly #utilization: typeof performance.eventLoopUtilization;
  /** Delays of the last complete window, in seconds. */
  #before = NO_DELAY;
  #older: EventLoopUtilization;
  #newer: EventLoopUtilization;
  #beganMs: number;

  constructor({
    histogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS }),
    now = () => performance.now(),
    utilization = performance.eventLoopUtilization,
  }: EventLoopOptions = {}) {
    this.#histogram = histogram;
    this.#now = now;
    this.#utilization = utilization;
    this.#beganMs = now();
    this.#newer = utilization();
    this.#older = this.#newer;
    histogram.enable();
  }

  stop(): void {
    this.#histogram.disable();
  }

  delays(): Delays {
    this.#turnOver();
    const { p50, p99, max } = this.#delaysSinceTurnover();
    const before = this.#before;
    const isFew = this.#histogram.count < SAMPLES_MIN;
    return {
      p50: isFew ? before.p50 : Math.max(before.p50, p50),
      p99: isFew ? before.p99 : Math.max(before.p99, p99),
      max: Math.max(before.max, max),
    };
  }

  utilization(): number {
    this.#turnOver();
    return this.#utilization(this.#utilization(), this.#older).utilization;
  }

  #turnOver(): void {
    const nowMs = this.#now();
    if (nowMs - this.#beganMs < EVENT_LOOP_WINDOW_MS) return;
    this.#beganMs = nowMs;
    this.#before = this.#delaysSinceTurnover();
    this.#histogram.reset();
    this.#older = this.#newer;
    this.#newer = this.#utilization();
  }

  #delaysSinceTurnover(): Delays {
    const histogram = this.#histogram;
    if (histogram.count === 0) return NO_DELAY;
    return {
      p50: toSeconds(histogram.percentile(50)),
      p99: toSeconds(histogram.percentile(99)),
      max: toSeconds(histogram.max),
    };
  }
}

// A sample is the time between two wake-ups of the timer, so an idle loop shows the timer's resolution.
function toSeconds(nanos: number): number {
  return Number.isFinite(nanos) ? Math.max(0, nanos / NANOS_PER_S - DELAY_RESOLUTION_MS / 1000) : 0;
}
