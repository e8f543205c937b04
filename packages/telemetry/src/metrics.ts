import { type Counter, type Meter, metrics, type UpDownCounter } from '@opentelemetry/api';
import { agentLabel, closedWord } from './closed-word.ts';
import { LABELS, type LabelName, METRICS } from './metric-registry.ts';
import { SCOPE } from './names.ts';

/** Upper bounds of the latency buckets: 0.25 ms times 2^n, up to 65.5 s; seconds. */
export const LATENCY_BUCKETS_S: readonly number[] = Array.from({ length: 19 }, (_, n) => 0.00025 * 2 ** n);
/** Upper bounds of the buckets of token counts, as the GenAI conventions advise: 4^n. */
const TOKEN_BUCKETS: readonly number[] = Array.from({ length: 14 }, (_, n) => 4 ** n);

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

export interface ObservedOf<L> {
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

/** Counters with an `agent` label start at 0 for each agent that becomes known, up to this many. */
const AGENTS_BORN_MAX = 64;

type Definition = Registry[keyof Registry];
type Point = { [label: string]: string | number };

/**
 * Creates the instruments of a service. Every counter and gauge that the service uses is exported at once with 0, in every combination
 * of its closed labels; those of an agent when the agent is named. Before startTelemetry (in unit tests) the default meter records nothing.
 */
export function createHopMetrics(service: string, meter: Meter = metrics.getMeter(SCOPE), agents: readonly string[] = []): HopMetrics {
  const entries = Object.entries(METRICS).map(([key, definition]) => [key, createInstrument(service, meter, definition, agents)]);
  return Object.fromEntries(entries) as HopMetrics;
}

function createInstrument(service: string, meter: Meter, definition: Definition, agents: readonly string[]) {
  const { name, type, unit, meaning: description } = definition;
  if (type === 'histogram') {
    const advice = { explicitBucketBoundaries: [...(unit === 's' ? LATENCY_BUCKETS_S : TOKEN_BUCKETS)] };
    const instrument = meter.createHistogram(name, { unit, description, advice });
    return {
      recordMs: (ms: number, labels?: Point) => instrument.record(Math.max(0, ms) / 1000, pointOf(service, labels)),
      record: (value: number, labels?: Point) => instrument.record(value, pointOf(service, labels)),
    };
  }
  if ('observed' in definition) {
    const instrument = meter.createObservableGauge(name, { unit, description });
    return {
      observe: (read: () => readonly (readonly [number, Point])[]) =>
        instrument.addCallback(result => {
          for (const [value, labels] of read()) result.observe(value, pointOf(service, labels));
        }),
    };
  }
  const create = type === 'counter' ? meter.createCounter : meter.createUpDownCounter;
  const instrument = create.call(meter, name, { unit, description }) as Counter | UpDownCounter;
  if ((definition.services as readonly string[]).includes(service)) {
    for (const labels of firstPoints(definition, agents)) instrument.add(0, pointOf(service, labels));
  }
  return { add: (n: number, labels?: Point) => instrument.add(n, pointOf(service, labels)) };
}

/** All combinations of a definition's closed labels; none when a label is open and has no known value. */
function firstPoints(definition: Definition, agents: readonly string[]): Point[] {
  const labels = 'labels' in definition ? definition.labels : {};
  let points: Point[] = [{}];
  for (const [label, values] of Object.entries(labels) as [LabelName, readonly string[] | string][]) {
    const known = typeof values === 'string' ? (label === 'agent' ? agents.slice(0, AGENTS_BORN_MAX) : []) : values;
    points = points.flatMap(point => known.map(value => ({ ...point, [label]: value })));
  }
  return points;
}

function pointOf(service: string, labels: Point = {}): Point {
  const point: Point = { service };
  for (const [label, value] of Object.entries(labels)) {
    if (value === undefined || !(label in LABELS)) continue;
    point[label] = typeof value === 'number' ? value : label === 'agent' || label === 'model' ? agentLabel(value) : closedWord(value);
  }
  return point;
}
