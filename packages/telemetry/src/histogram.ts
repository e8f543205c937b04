import type { Attributes, HrTime } from '@opentelemetry/api';

/** A recorded value and the `traceparent` of the trace in which it was measured. */
export type Exemplar = { traceparent: string; value: number; atMs: number };

/** The values of one set of labels, counted in buckets. */
export class Buckets {
  readonly attributes: Attributes;
  readonly startTime: HrTime = hrTimeNow();
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  /** The newest value of each bucket that has a sampled trace. */
  readonly #exemplars: (Exemplar | undefined)[] = [];

  /** `bounds`: inclusive upper bounds, ascending. Values above the last one have a bucket of their own. */
  constructor(attributes: Attributes, bounds: readonly number[]) {
    this.attributes = attributes;
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  record(value: number, traceparent?: string): void {
    let low = 0;
    let high = this.#bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value <= this.#bounds[middle]!) high = middle;
      else low = middle + 1;
    }
    this.#counts[low]! += 1;
    this.#count += 1;
    this.#sum += value;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
    // Otherwise, in a process that samples 1 % of its traces, exemplars would be replaced by exemplars whose trace no backend has.
    if (traceparent === undefined || !isSampled(traceparent)) return;
    const exemplar = this.#exemplars[low];
    if (exemplar === undefined) this.#exemplars[low] = { traceparent, value, atMs: Date.now() };
    else {
      exemplar.traceparent = traceparent;
      exemplar.value = value;
      exemplar.atMs = Date.now();
    }
  }

  /** A copy of the current counts, in the form that the SDK's exporters read. They ignore `exemplars`, which has one for each bucket. */
  read() {
    return {
      buckets: { boundaries: [...this.#bounds], counts: [...this.#counts] },
      count: this.#count,
      sum: this.#sum,
      min: this.#min,
      max: this.#max,
      exemplars: this.#exemplars.map(one => one && { ...one }),
    };
  }
}

/** Position of the last digit of the flags in a `traceparent` of version 00. */
const FLAGS_AT = 54;

function isSampled(traceparent: string): boolean {
  return (Number.parseInt(traceparent.charAt(FLAGS_AT), 16) & 1) === 1;
}

/** One metric whose values are counted here and collected when metrics are read. */
export interface Histogram {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** The counted values, by set of labels. */
  readonly series: Iterable<Buckets>;
}

export function hrTimeNow(): HrTime {
  const ms = Date.now();
  return [Math.trunc(ms / 1000), (ms % 1000) * 1e6];
}
