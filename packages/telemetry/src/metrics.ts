import { type Meter, metrics } from '@opentelemetry/api';
import { agentLabel, closedWord } from './closed-word.ts';
import { Buckets, type Histogram } from './histogram.ts';
import { LABELS, type LabelName, METRICS } from './metric-registry.ts';
import { SCOPE } from './names.ts';

/** Upper bounds of the latency buckets: 0.25 ms times 2^n, up to 65.5 s. */
export const LATENCY_BUCKETS_S: readonly number[] = Array.from({ length: 19 }, (_, n) => 0.00025 * 2 ** n);
/** Upper bounds of the buckets of token counts, as the GenAI conventions advise: 4^n. */
const TOKEN_BUCKETS: readonly number[] = Array.from({ length: 14 }, (_, n) => 4 ** n);

/** Label sets of one metric; further ones are summed under `otel_metric_overflow`. */
export const SERIES_PER_METRIC_MAX = 600;
const OVERFLOW = { 'otel.metric.overflow': true };

type Registry = typeof METRICS;
type ValueOf<V> = V extends readonly (infer W)[] ? W : V extends 'number' ? number : string;
/** Labels of a metric. A word of a closed list, or the name of a configured agent; any other value becomes `other`. */
type LabelsOf<D> = D extends { labels: infer L } ? { readonly [K in keyof L]?: ValueOf<L[K]> | undefined } : Record<never, never>;

export interface CounterOf<L> {
  /** `n` >= 0. */
  add(n: number, labels?: L): void;
}

export interface GaugeOf<L> {
  /** +1 at the start, -1 at the end. */
  add(change: number, labels?: L): void;
}

export interface HistogramOf<L> {
  /** Milliseconds; exported as seconds. Negative values (two machines with different clocks) count as 0. */
  recordMs(ms: number, labels?: L): void;
  /** A value in the unit of the metric. */
  record(value: number, labels?: L): void;
}

interface ObservedOf<L> {
  /** Called whenever metrics are read. */
  observe(read: () => readonly (readonly [number, L])[]): void;
}

type InstrumentOf<D> = D extends { observed: true }
  ? ObservedOf<LabelsOf<D>>
  : D extends { type: 'counter' }
    ? CounterOf<LabelsOf<D>>
    : D extends { type: 'gauge' }
      ? GaugeOf<LabelsOf<D>>
      : HistogramOf<LabelsOf<D>>;

/** The instruments of all services. */
export type HopMetrics = { readonly [K in keyof Registry]: InstrumentOf<Registry[K]> };

/** A gauge that is computed when metrics are read. Only the values that `read` returns at that time are exported. */
export interface ObservedGauge {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  read(): (readonly [value: number, labels: Point])[];
}

/**
 * The reader that collects the instruments. `startMetrics` makes one that is exported. `fastPaths` false: the SDK counts sums and
 * histograms.
 */
export type Exported = {
  readonly meter: Meter;
  readonly fastPaths: boolean;
  readonly histograms: Histogram[];
  readonly gauges: ObservedGauge[];
};

type Definition = Registry[keyof Registry];
type Point = { [label: string]: string | number };

/**
 * Creates the instruments of a service. Every counter and gauge that the service uses is exported at once with 0, in every combination of
 * its closed labels; `startAgentAtZero` does this for the counters of an agent. Without `exported` (in unit tests) nothing is read.
 */
export function createHopMetrics(
  service: string,
  exported: Exported = { meter: metrics.getMeter(SCOPE), fastPaths: true, histograms: [], gauges: [] },
): HopMetrics {
  const entries = Object.entries(METRICS).map(([key, definition]) => [key, createInstrument(service, exported, definition)]);
  const created = Object.fromEntries(entries) as HopMetrics;
  startAtZero(created, service, undefined);
  return created;
}

/** Exports the counters of an agent with 0, once its process knows its name. */
export function startAgentAtZero(created: HopMetrics, service: string, agent: string): void {
  startAtZero(created, service, agent);
}

function startAtZero(created: HopMetrics, service: string, agent: string | undefined): void {
  for (const [key, definition] of Object.entries(METRICS)) {
    const isOwn = (definition.services as readonly string[]).includes(service);
    const hasAgent = 'labels' in definition && 'agent' in definition.labels;
    if (!isOwn || definition.type === 'histogram' || 'observed' in definition || hasAgent !== (agent !== undefined)) continue;
    const instrument = created[key as keyof HopMetrics] as CounterOf<Point>;
    for (const labels of firstPoints(definition, agent)) instrument.add(0, labels);
  }
}

let ofProcess: HopMetrics | undefined;

/** The instruments of this process, for libraries that are created deep in an agent; undefined before startTelemetry. */
export function processMetrics(): HopMetrics | undefined {
  return ofProcess;
}

export function setProcessMetrics(created: HopMetrics | undefined): void {
  ofProcess = created;
}

function createInstrument(service: string, { meter, fastPaths, histograms, gauges }: Exported, definition: Definition) {
  const { name, type, unit, meaning: description } = definition;
  const labelNames = 'labels' in definition ? Object.keys(definition.labels) : [];
  const bounds = unit === 's' ? LATENCY_BUCKETS_S : TOKEN_BUCKETS;
  if (!fastPaths && !('observed' in definition)) return sdkInstrument(service, meter, definition, bounds);
  // An instrument of the SDK copies, sorts and hashes the labels on every call, and a chunk of text causes a dozen calls. Sums and
  // histograms are therefore counted here, and collected when metrics are read.
  if (type === 'histogram') {
    const series: Buckets[] = [];
    const create = (point: Point) => {
      if (series.length === SERIES_PER_METRIC_MAX) return series.at(-1)!;
      const isLast = series.length === SERIES_PER_METRIC_MAX - 1;
      const created = new Buckets(isLast ? OVERFLOW : point, bounds);
      series.push(created);
      return created;
    };
    const points = new Points(service, labelNames, create);
    histograms.push({ name, unit, description, series });
    return {
      recordMs: (ms: number, labels?: Point) => points.of(labels).record(Math.max(0, ms) / 1000),
      record: (value: number, labels?: Point) => points.of(labels).record(value),
    };
  }
  if ('observed' in definition) {
    // An observable gauge of the SDK repeats the last value of every point that its callbacks ever reported: a shard that was released
    // would keep its lag until the process ends.
    const reads: (() => readonly (readonly [number, Point])[])[] = [];
    const read = () => reads.flatMap(one => one().map(([value, labels]) => [value, pointOf(service, labels)] as const));
    gauges.push({ name, unit, description, read });
    return { observe: (one: () => readonly (readonly [number, Point])[]) => void reads.push(one) };
  }
  const sums = new Points(service, labelNames, point => ({ point, value: 0 }));
  const create = type === 'counter' ? meter.createObservableCounter : meter.createObservableUpDownCounter;
  create.call(meter, name, { unit, description }).addCallback(result => {
    for (const { value, point } of sums.values()) result.observe(value, point);
  });
  return {
    add: (n: number, labels?: Point) => {
      sums.of(labels).value += n;
    },
  };
}

/** The same instrument, counted by the SDK. */
function sdkInstrument(service: string, meter: Meter, definition: Definition, bounds: readonly number[]) {
  const { name, type, unit, meaning: description } = definition;
  if (type === 'histogram') {
    const histogram = meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...bounds] } });
    const record = (value: number, labels?: Point) => histogram.record(value, pointOf(service, labels));
    return { record, recordMs: (ms: number, labels?: Point) => record(Math.max(0, ms) / 1000, labels) };
  }
  const create = type === 'counter' ? meter.createCounter : meter.createUpDownCounter;
  const sum = create.call(meter, name, { unit, description });
  return { add: (n: number, labels?: Point) => sum.add(n, pointOf(service, labels)) };
}

type Branch<T> = { readonly next: Map<string | number | undefined, Branch<T>>; leaf?: T };

/** The values of each point of one metric, created once per point. A tree by label, because a joined key was 1 % of the CPU of a relay. */
class Points<T> {
  readonly #service: string;
  readonly #labels: readonly string[];
  readonly #create: (point: Point) => T;
  readonly #root: Branch<T> = { next: new Map() };
  readonly #created: T[] = [];

  constructor(service: string, labels: readonly string[], create: (point: Point) => T) {
    this.#service = service;
    this.#labels = labels;
    this.#create = create;
  }

  of(labels: Point = {}): T {
    let branch: Branch<T> | undefined = this.#root;
    for (const label of this.#labels) branch = branch?.next.get(labels[label]);
    return branch?.leaf ?? this.#ofPoint(pointOf(this.#service, labels));
  }

  values(): Iterable<T> {
    return this.#created;
  }

  /** Labels that are not closed words map to one point, and are not remembered one by one. */
  #ofPoint(point: Point): T {
    let branch = this.#root;
    for (const label of this.#labels) {
      const value = point[label];
      const next: Branch<T> = branch.next.get(value) ?? { next: new Map() };
      branch.next.set(value, next);
      branch = next;
    }
    if (branch.leaf === undefined) {
      branch.leaf = this.#create(point);
      this.#created.push(branch.leaf);
    }
    return branch.leaf;
  }
}

/** All combinations of a definition's closed labels; none if a label other than `agent` is open. */
function firstPoints(definition: Definition, agent: string | undefined): Point[] {
  const labels = 'labels' in definition ? definition.labels : {};
  let points: Point[] = [{}];
  for (const [label, values] of Object.entries(labels) as [LabelName, readonly string[] | string][]) {
    const known = typeof values === 'string' ? (label === 'agent' && agent !== undefined ? [agent] : []) : values;
    points = points.flatMap(point => known.map(value => ({ ...point, [label]: value })));
  }
  return points;
}

function pointOf(service: string, labels: Point = {}): Point {
  const point: Point = { service };
  for (const [label, value] of Object.entries(labels)) {
    if (value === undefined || !(label in LABELS)) continue;
    point[label] =
      typeof value === 'number' ? value : label === 'agent' || label === 'model' ? agentLabel(value) : closedWord(value);
  }
  return point;
}
