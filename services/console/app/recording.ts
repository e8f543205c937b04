import type { StreamResponse } from '@hopline/a2a';
import type { TaskTrace } from '@hopline/task-audit';

type RecordedItem = { cursor: string; generation: number; seq: number; event: StreamResponse | 'gap' };
export type Marker = { index: number; kind: 'state' | 'takeover' | 'attempt' | 'artifact' | 'gap'; label: string };
/** A time without events that playing shortens to IDLE_MS_MAX. */
export type IdleSpan = { fromPlayMs: number; toPlayMs: number; ms: number };

/** Longest pause while playing. */
export const IDLE_MS_MAX = 1_000;
/** Pace of a task whose times are unknown, in milliseconds per event. */
const UNKNOWN_PACE_MS = 40;

type Times = Pick<TaskTrace, 'startedAt' | 'events' | 'relays' | 'producers'>;

/** The events of a task with their times, on a time axis on which idle times are short. */
export class Recording {
  readonly items: RecordedItem[] = [];
  /** Milliseconds after the task's first input. */
  readonly #atMs: number[] = [];
  /** The times of `#atMs` on the played axis. */
  readonly #playMs: number[] = [];
  // Updated as events arrive, so that rendering a frame costs the same for a task of any length.
  readonly #indexes = new Map<number, number>();
  readonly #eventMarkers: Marker[] = [];
  #idle: IdleSpan[] = [];
  #times: Times | undefined;
  #recorded = new Map<number, number>();
  #startedAt: number | undefined;
  /** True if the server has no times of this task. */
  isPaceUnknown = false;

  get length(): number {
    return this.items.length;
  }

  /** Time of the first event, in epoch milliseconds; undefined before it. */
  get startedAtMs(): number | undefined {
    return this.#startedAt;
  }

  get endPlayMs(): number {
    return this.#playMs.at(-1) ?? 0;
  }

  /** `nowMs`: arrival time in epoch milliseconds, used for events that the audit does not contain yet. */
  add(cursor: string | undefined, event: StreamResponse | 'gap', nowMs: number): void {
    const [generation = 0, seq = 0] = (cursor ?? '').split('.').map(Number);
    this.items.push({ cursor: cursor ?? '', generation, seq, event });
    if (event !== 'gap') {
      this.#startedAt ??= startOf(event);
      this.#indexes.set(generation, this.items.length - 1);
    }
    this.#eventMarkers.push(...markerOf(event, this.items.length - 1));
    this.#place(this.items.length - 1, nowMs - (this.#startedAt ?? nowMs));
  }

  /** Replaces arrival times with log times. */
  setTimes(times: Times | undefined): void {
    if (times === undefined) this.isPaceUnknown = true;
    else {
      this.isPaceUnknown = false;
      this.#times = times;
      this.#startedAt = times.startedAt;
      this.#recorded = new Map(times.events.map(({ generation, atMs, storedMs = atMs }) => [generation, storedMs]));
    }
    const arrived = this.#atMs.splice(0);
    this.#playMs.length = 0;
    this.#idle = [];
    for (const [index, atMs] of arrived.entries()) this.#place(index, atMs);
  }

  #place(index: number, arrivedMs: number): void {
    const before = this.#atMs[index - 1] ?? 0;
    const known = this.#recorded.get(this.items[index]!.generation);
    const atMs = Math.max(before, this.isPaceUnknown ? index * UNKNOWN_PACE_MS : (known ?? arrivedMs));
    this.#atMs.push(atMs);
    const idleMs = index === 0 ? 0 : atMs - before;
    this.#playMs.push(this.playMs(index - 1) + Math.min(idleMs, IDLE_MS_MAX));
    if (idleMs > IDLE_MS_MAX) this.#idle.push({ fromPlayMs: this.playMs(index - 1), toPlayMs: this.playMs(index), ms: idleMs });
  }

  atMs(index: number): number {
    return this.#atMs[index] ?? 0;
  }

  playMs(index: number): number {
    return this.#playMs[index] ?? 0;
  }

  /** Index of the last event at a time of the played axis; -1 before the first. */
  indexAt(playMs: number): number {
    return upperBound(this.#playMs, playMs) - 1;
  }

  /** Index of the last event at a time of the log. */
  indexAtMs(atMs: number): number {
    return upperBound(this.#atMs, atMs) - 1;
  }

  /** `text`: a cursor, or a log sequence, which selects the last event up to that sequence. Undefined for any other text. */
  indexOf(text: string): number | undefined {
    const [, generation, seq] = /^(?:(\d{1,15})\.)?(\d{1,15})$/.exec(text) ?? [];
    if (seq === undefined) return undefined;
    const isWithin = (item: RecordedItem) =>
      generation === undefined ? item.seq <= Number(seq) : item.generation <= Number(generation);
    return this.items.findLastIndex(isWithin);
  }

  /** Index of the event of a generation; -1 if no event has it. */
  indexOfGeneration(generation: number): number {
    return this.#indexes.get(generation) ?? -1;
  }

  idleSpans(): readonly IdleSpan[] {
    return this.#idle;
  }

  /** Targets of `[` and `]`, in order. */
  markers(): Marker[] {
    const found = [...this.#eventMarkers];
    const { relays = [], producers = [] } = this.#times ?? {};
    for (const { takeover, relay = 'a relay' } of relays)
      if (takeover !== undefined)
        found.push({ index: this.#after(takeover.atMs), kind: 'takeover', label: `${relay} took over` });
    for (const { attempt, agent, takenMs } of producers)
      if (attempt > 1 && takenMs !== undefined)
        found.push({ index: this.#after(takenMs), kind: 'attempt', label: `attempt ${attempt} of ${agent}` });
    return found.sort((a, b) => a.index - b.index);
  }

  #after(atMs: number): number {
    return Math.min(upperBound(this.#atMs, atMs), Math.max(0, this.length - 1));
  }
}

function markerOf(event: StreamResponse | 'gap', index: number): Marker[] {
  if (event === 'gap') return [{ index, kind: 'gap', label: 'expired events' }];
  if ('statusUpdate' in event) {
    const state = event.statusUpdate.status.state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');
    return [{ index, kind: 'state', label: state }];
  }
  if ('artifactUpdate' in event && event.artifactUpdate.append !== true)
    return [{ index, kind: 'artifact', label: event.artifactUpdate.artifact.name ?? 'artifact' }];
  return [];
}

function startOf(event: StreamResponse): number | undefined {
  const ms = 'task' in event ? Date.parse(event.task.status.timestamp ?? '') : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** Number of values that are at most `value`. `values` must be ascending. */
function upperBound(values: readonly number[], value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
