import { IDLE_MS_MAX, type Recording } from './recording.ts';

/** Steps of the zoom: the shown part of the axis is one divided by them. */
export const ZOOMS = [1, 2, 4, 8, 16, 32, 64] as const;

/**
 * The common axis of the playback bar and of the time line. It shows playing time, in which a time without events takes at most
 * IDLE_MS_MAX, and includes the time before the first event and after the last one. A fraction is a place in the shown part: 0 is its left
 * end, 1 its right end.
 */
export class Axis {
  readonly #recording: Recording;
  readonly #endMs: number;
  readonly #leadMs: number;
  readonly #wholeMs: number;
  readonly #from: number;
  readonly zoom: number;

  /** `endMs`: the end of the task, which can be later than its last event. The shown part follows the playhead, in steps of half its width. */
  constructor(recording: Recording, endMs: number, zoom = 1, playMs = 0) {
    this.#recording = recording;
    this.zoom = zoom;
    this.#endMs = Math.max(endMs, recording.atMs(recording.length - 1));
    this.#leadMs = Math.min(recording.atMs(0), IDLE_MS_MAX);
    const tailMs = Math.min(this.#endMs - recording.atMs(recording.length - 1), IDLE_MS_MAX);
    this.#wholeMs = Math.max(1, this.#leadMs + recording.endPlayMs + tailMs);
    const step = 1 / zoom / 2;
    const place = (this.#leadMs + playMs) / this.#wholeMs;
    this.#from = Math.min(1 - 1 / zoom, Math.max(0, Math.floor(place / step - 0.5) * step));
  }

  /** Equal axes show the same: what is drawn on one need not be drawn again on the other. */
  get key(): string {
    return `${this.#wholeMs} ${this.#endMs} ${this.zoom} ${this.#from}`;
  }

  ofPlayMs(playMs: number): number {
    return ((this.#leadMs + playMs) / this.#wholeMs - this.#from) * this.zoom;
  }

  /** `ms`: milliseconds after the first input of the task. */
  ofMs(ms: number): number {
    return this.ofPlayMs(this.#playMsOf(ms));
  }

  /** The time of the played axis at a fraction. */
  playMsAt(fraction: number): number {
    return (this.#from + fraction / this.zoom) * this.#wholeMs - this.#leadMs;
  }

  /** The time at a fraction, in milliseconds after the first input of the task. */
  msAt(fraction: number): number {
    const playMs = this.playMsAt(fraction);
    const recording = this.#recording;
    const last = recording.length - 1;
    const firstMs = recording.atMs(0);
    if (playMs < 0) return this.#leadMs === 0 ? firstMs : firstMs + (playMs / this.#leadMs) * firstMs;
    if (playMs > recording.endPlayMs) {
      const tailMs = this.#wholeMs - this.#leadMs - recording.endPlayMs;
      const share = tailMs === 0 ? 0 : (playMs - recording.endPlayMs) / tailMs;
      return recording.atMs(last) + share * (this.#endMs - recording.atMs(last));
    }
    const index = Math.max(0, recording.indexAt(playMs));
    return between(
      playMs,
      recording.playMs(index),
      recording.playMs(index + 1),
      recording.atMs(index),
      recording.atMs(index + 1),
    );
  }

  #playMsOf(ms: number): number {
    const recording = this.#recording;
    const last = recording.length - 1;
    const firstMs = recording.atMs(0);
    if (ms < firstMs) return (ms / firstMs - 1) * this.#leadMs;
    if (ms >= recording.atMs(last)) {
      const tailMs = this.#wholeMs - this.#leadMs - recording.endPlayMs;
      return recording.endPlayMs + between(ms, recording.atMs(last), this.#endMs, 0, tailMs);
    }
    const index = recording.indexAtMs(ms);
    return between(ms, recording.atMs(index), recording.atMs(index + 1), recording.playMs(index), recording.playMs(index + 1));
  }
}

/** Maps a value between `from` and `to` to the same place between two other values. */
function between(value: number, from: number, to: number, otherFrom: number, otherTo: number): number {
  if (to <= from) return otherFrom;
  return otherFrom + Math.min(1, (value - from) / (to - from)) * (otherTo - otherFrom);
}
