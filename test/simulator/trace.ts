import type { VirtualClock } from './virtual-clock.ts';

const LINES_KEPT_MAX = 200_000;

/** Log of a run, in order. Its digest covers every event; the lines are kept only on request. */
export class Trace {
  readonly #clock: VirtualClock;
  readonly #keepsLines: boolean;
  readonly lines: string[] = [];
  #hash = 2166136261;
  #count = 0;

  constructor(clock: VirtualClock, keepsLines: boolean) {
    this.#clock = clock;
    this.#keepsLines = keepsLines;
  }

  add(process: string, ...what: string[]): void {
    const line = `${this.#clock.nowMs.toFixed(3).padStart(11)} ${process.padEnd(14)} ${what.join(' ').trimEnd()}`;
    for (let at = 0; at < line.length; at++) this.#hash = Math.imul(this.#hash ^ line.charCodeAt(at), 16777619);
    this.#count += 1;
    if (this.#keepsLines && this.lines.length < LINES_KEPT_MAX) this.lines.push(line);
  }

  /** Equal for two runs with the same events at the same times. */
  get digest(): string {
    return `${this.#count}:${(this.#hash >>> 0).toString(16)}`;
  }
}
