import { type HrTime, type Meter, metrics } from '@opentelemetry/api';
import { agentLabel, closedWord, modelLabel } from './closed-word.ts';
import { Buckets, type Histogram, hrTimeNow } from './histogram.ts';
import { LABELS, type LabelName, METRICS } from './metric-registry.ts';
import { SCOPE } from './names.ts';
import { Parties } from './parties.ts';
import type { TraceCarrier } from './propagation.ts';
import { OTHER } from './top-names.ts';

/** Upper bounds of the latency buckets: 0.25 ms times 2^n, up to 35 minutes, because the turn of an agent may take as long. */
export const LATENCY_BUCKETS_S: readonly number[] = Array.from({ length: 24 }, (_, n) => 0.00025 * 2 ** n);
/** Upper bounds of the durations of requests to models, as the GenAI conventions advise: 10 ms times 2^n, up to 81.92 s. */
const MODEL_BUCKETS_S: readonly number[] = Array.from({ length: 14 }, (_, n) => (10 * 2 ** n) / 1_000);
/** Upper bounds of the buckets of token counts, as the GenAI conventions advise: 4^n. */
const TOKEN_BUCKETS: readonly number[] = Array.from({ length: 14 }, (_, n) => 4 ** n);

/** Maximum number of label sets of one metric. Further ones are summed under `otel_metric_overflow`. */
export const SERIES_PER_METRIC_MAX = 700;
const OVERFLOW: Point = { 'otel.metric.overflow': 'true' };
/**
 * Number of label sets of one metric that are found without checking their words again. It is bounded, because agents and models come and
 * go, so a process that runs for months may see any number of them.
 */
const LABEL_SETS_KEPT_MAX = 10 * SERIES_PER_METRIC_MAX;

type Registry = typeof METRICS;
type ValueOf<V> = V extends readonly (infer W)[] ? W : V extends 'number' ? number : string;
/** Labels of a metric. A value is a word of a closed list, or the name of a configured agent; any other value becomes `other`. */
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
  /** Milliseconds; exported as seconds. Negative values (two machines with different clocks) count as 0. `trace`: its exemplar. */
  recordMs(ms: number, labels?: L, trace?: TraceCarrier): void;
  /** A value in the unit of the metric. */
  record(value: number, labels?: L, trace?: TraceCarrier): void;
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
export type HopMetrics = { readonly [K in keyof Registry]: InstrumentOf<Registry[K]> } & {
  /** The values of the labels `tenant` and `caller`. */
  readonly parties: Parties;
};

/** A sum or gauge whose values are taken when metrics are read. Only the values that `read` returns at that time are exported. */
export type ReadMetric = {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  readonly kind: 'counter' | 'up-down' | 'gauge';
  readonly startTime: HrTime;
  read(): Iterable<readonly [value: number, labels: Point]>;
};

/**
 * The reader that collects the instruments. `startMetrics` makes one that is exported. `fastPaths` false: the SDK counts sums and
 * histograms.
 */
export type Exported = {
  readonly meter: Meter;
  readonly fastPaths: boolean;
  readonly histograms: Histogram[];
  readonly readMetrics: ReadMetric[];
};

type Definition = Registry[keyof Registry];
type Point = { [label: string]: string | number };

/**
 * Creates the instruments of a service. Every counter and gauge that the service uses is exported at once with 0, in every combination of
 * its closed labels; `startAgentAtZero` does this for the counters of an agent. Without `exported` (in unit tests) nothing is read.
 */
export function createHopMetrics(
  service: string,
  exported: Exported = { meter: metrics.getMeter(SCOPE), fastPaths: true, histograms: [], readMetrics: [] },
): HopMetrics {
  const withParties: Points<unknown>[] = [];
  const parties = new Parties((label, value) => {
    for (const points of withParties) points.forget(label, value);
  });
  const toPoint = (labels?: Point) => pointOf(service, labels, parties);
  const entries = Object.entries(METRICS).map(([key, definition]) => {
    const { instrument, points } = createInstrument(toPoint, exported, definition);
    if (points !== undefined && 'labels' in definition && 'tenant' in definition.labels) withParties.push(points);
    return [key, instrument];
  });
  const created = { ...Object.fromEntries(entries), parties } as HopMetrics;
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

/** The labels of a point, as they are exported. */
type ToPoint = (labels?: Point) => Point;
type Instrument = { instrument: unknown; points?: Points<unknown> };

function createInstrument(toPoint: ToPoint, exported: Exported, definition: Definition): Instrument {
  const { meter, fastPaths, histograms, readMetrics } = exported;
  const { name, type, unit, meaning: description } = definition;
  const labelNames = 'labels' in definition ? Object.keys(definition.labels) : [];
  const bounds = unit !== 's' ? TOKEN_BUCKETS : name.startsWith('gen_ai.') ? MODEL_BUCKETS_S : LATENCY_BUCKETS_S;
  if (!fastPaths && !('observed' in definition)) return { instrument: sdkInstrument(toPoint, meter, definition, bounds) };
  // An SDK instrument copies, sorts and hashes the labels on every call, and a chunk of text causes a dozen calls. So sums and histograms
  // are counted here, and collected when metrics are read.
  if (type === 'histogram') {
    const points = new Points(toPoint, labelNames, point => new Buckets(point, bounds));
    histograms.push({ name, unit, description, series: points.values() });
    const record = (value: number, labels?: Point, trace?: TraceCarrier) => points.of(labels).record(value, trace?.traceparent);
    const recordMs = (ms: number, labels?: Point, trace?: TraceCarrier) => record(Math.max(0, ms) / 1000, labels, trace);
    return { instrument: { record, recordMs }, points };
  }
  const kind = 'observed' in definition ? type : type === 'counter' ? 'counter' : 'up-down';
  const metric = { name, unit, description, kind, startTime: hrTimeNow() } as const;
  if ('observed' in definition) {
    // An observable instrument of the SDK repeats the last value of every point that its callbacks have ever reported, so a released shard
    // would keep its lag until the process ends.
    const reads: (() => readonly (readonly [number, Point])[])[] = [];
    const read = () => reads.flatMap(one => one().map(([value, labels]) => [value, toPoint(labels)] as const));
    readMetrics.push({ ...metric, read });
    return { instrument: { observe: (one: () => readonly (readonly [number, Point])[]) => void reads.push(one) } };
  }
  const points = new Points(toPoint, labelNames, point => ({ point, value: 0 }));
  readMetrics.push({ ...metric, read: () => Array.from(points.values(), ({ value, point }) => [value, point] as const) });
  const add = (n: number, labels?: Point) => {
    points.of(labels).value += n;
  };
  return { instrument: { add }, points };
}

/** An instrument that the SDK counts instead of this process. */
function sdkInstrument(toPoint: ToPoint, meter: Meter, definition: Definition, bounds: readonly number[]) {
  const { name, type, unit, meaning: description } = definition;
  if (type === 'histogram') {
    const histogram = meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...bounds] } });
    const record = (value: number, labels?: Point) => histogram.record(value, toPoint(labels));
    return { record, recordMs: (ms: number, labels?: Point) => record(Math.max(0, ms) / 1000, labels) };
  }
  const create = type === 'counter' ? meter.createCounter : meter.createUpDownCounter;
  const sum = create.call(meter, name, { unit, description });
  return { add: (n: number, labels?: Point) => sum.add(n, toPoint(labels)) };
}

type Branch<T> = { readonly next: Map<string | number | undefined, Branch<T>>; leaf?: T };

/**
 * The values of each point of one metric, created once per point; points beyond SERIES_PER_METRIC_MAX share one. It is a tree with a level
 * for each label, because a joined key took 1 % of a relay's CPU.
 */
class Points<T> {
  readonly #toPoint: ToPoint;
  readonly #labels: readonly string[];
  readonly #create: (point: Point) => T;
  #root: Branch<T> = { next: new Map() };
  #leaves = 0;
  readonly #created = new Map<T, Point>();
  #overflow: T | undefined;

  constructor(toPoint: ToPoint, labels: readonly string[], create: (point: Point) => T) {
    this.#toPoint = toPoint;
    this.#labels = labels;
    this.#create = create;
  }

  of(labels: Point = {}): T {
    return this.#leafOf(labels) ?? this.#ofPoint(this.#toPoint(labels));
  }

  /** Every value, now and later; it can be read again. */
  values(): Iterable<T> {
    const created = this.#created;
    return { [Symbol.iterator]: () => created.keys() };
  }

  /** Removes the points with this value of a label. */
  forget(label: string, value: string | number): void {
    const kept = [...this.#created].filter(([leaf, point]) => leaf === this.#overflow || point[label] !== value);
    this.#created.clear();
    this.#root = { next: new Map() };
    this.#leaves = 0;
    for (const [leaf, point] of kept) {
      this.#created.set(leaf, point);
      if (leaf !== this.#overflow) this.#setLeaf(this.#branchOf(point), leaf);
    }
  }

  /** Labels that are not closed words map to one point, and are not remembered one by one. */
  #ofPoint(point: Point): T {
    if (this.#overflow !== undefined && this.#leaves >= LABEL_SETS_KEPT_MAX) return this.#leafOf(point) ?? this.#overflow;
    const branch = this.#branchOf(point);
    return branch.leaf ?? this.#setLeaf(branch, this.#createLeaf(point));
  }

  #leafOf(point: Point): T | undefined {
    let branch: Branch<T> | undefined = this.#root;
    for (const label of this.#labels) branch = branch?.next.get(point[label]);
    return branch?.leaf;
  }

  #setLeaf(branch: Branch<T>, leaf: T): T {
    branch.leaf = leaf;
    this.#leaves += 1;
    return leaf;
  }

  #branchOf(point: Point): Branch<T> {
    let branch = this.#root;
    for (const label of this.#labels) {
      const value = point[label];
      const next: Branch<T> = branch.next.get(value) ?? { next: new Map() };
      branch.next.set(value, next);
      branch = next;
    }
    return branch;
  }

  #createLeaf(point: Point): T {
    if (this.#overflow !== undefined) return this.#overflow;
    const isLast = this.#created.size === SERIES_PER_METRIC_MAX - 1;
    const leaf = this.#create(isLast ? OVERFLOW : point);
    if (isLast) this.#overflow = leaf;
    this.#created.set(leaf, point);
    return leaf;
  }
}

/** All combinations of a definition's closed labels; none if it has an open label other than `agent`. */
function firstPoints(definition: Definition, agent: string | undefined): Point[] {
  const labels = 'labels' in definition ? definition.labels : {};
  let points: Point[] = [{}];
  for (const [label, values] of Object.entries(labels) as [LabelName, readonly string[] | string][]) {
    const known = typeof values === 'string' ? (label === 'agent' && agent !== undefined ? [agent] : []) : values;
    points = points.flatMap(point => known.map(value => ({ ...point, [label]: value })));
  }
  return points;
}

/** `parties`: owners that are label values. The series of any other owner has ended, or never begins. */
function pointOf(service: string, labels: Point = {}, parties?: Parties): Point {
  const point: Point = { service };
  for (const [label, value] of Object.entries(labels)) {
    if (value === undefined || !(label in LABELS)) continue;
    point[label] = typeof value === 'number' ? value : wordOf(label, value, parties);
  }
  return point;
}

function wordOf(label: string, value: string, parties: Parties | undefined): string {
  if (label === 'agent') return agentLabel(value);
  if (label === 'model' || label === 'gen_ai.request.model') return modelLabel(value);
  if (label === 'tenant' || label === 'caller') return parties?.label(label, value) ?? OTHER;
  return closedWord(value);
}
