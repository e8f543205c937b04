import { crc32 } from 'node:zlib';
import type { VirtualClock } from './virtual-clock.ts';

const LINES_KEPT_MAX = 200_000;
const BYTES_SHOWN_MAX = 300;

/** Log of a run, in order. Its digest covers every event; the lines are kept only on request. */
export class Trace {
  readonly #clock: VirtualClock;
  readonly #keepsLines: boolean;
  readonly lines: string[] = [];
  #hash = 0;
  #count = 0;

  constructor(clock: VirtualClock, keepsLines: boolean) {
    this.#clock = clock;
    this.#keepsLines = keepsLines;
  }

  add(process: string, ...what: string[]): void {
    const line = `${this.#clock.nowMs.toFixed(3).padStart(11)} ${process.padEnd(14)} ${what.join(' ').trimEnd()}`;
    this.#hash = crc32(line, this.#hash);
    this.#count += 1;
    if (this.#keepsLines && this.lines.length < LINES_KEPT_MAX) this.lines.push(line);
  }

  /** The line shows only how the bytes begin. */
  addBytes(process: string, direction: string, bytes: Uint8Array): void {
    this.#hash = crc32(bytes, this.#hash);
    this.add(process, direction, `${bytes.length} bytes`);
    if (!this.#keepsLines || this.lines.length >= LINES_KEPT_MAX) return;
    this.lines.push(`${this.lines.pop()} ${JSON.stringify(Buffer.from(bytes.subarray(0, BYTES_SHOWN_MAX)).toString('latin1'))}`);
  }

  /** Equal for two runs with the same events at the same times. */
  get digest(): string {
    return `${this.#count}:${this.#hash.toString(16)}`;
  }
}
