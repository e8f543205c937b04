import type { HistogramMetricData, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import type { Exemplar } from './histogram.ts';
import { spanContextFrom } from './propagation.ts';

/** Format of the answer of `/metrics`. Prometheus asks for OpenMetrics, which has exemplars, but accepts both. */
export type MetricsFormat = 'text' | 'openmetrics';

export const METRICS_TYPES: Readonly<Record<MetricsFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** The form that a scraper with this `Accept` header gets. */
export function metricsFormatFor(accept: string | undefined): MetricsFormat {
  return accept?.includes('application/openmetrics-text') ? 'openmetrics' : 'text';
}

const TOTAL = '_total';
const METADATA = /^# (HELP|TYPE|UNIT) (\S+)(.*)$/;
const BUCKET = /^\w+_bucket\{/;

/**
 * The text format 0.0.4 as OpenMetrics 1.0 with exemplars. The SDK serializes only 0.0.4; the lines of samples are the same in both forms.
 * The serializer keeps the order of `all`, so the lines of buckets are paired with their exemplars by their order.
 */
export function openMetricsText(text: string, all: ResourceMetrics): string {
  const exemplars = exemplarsOf(all);
  const lines = text.split('\n').flatMap(line => {
    if (line === '') return [];
    const [, key, name = '', rest = ''] = METADATA.exec(line) ?? [];
    if (key !== undefined) return [`# ${key} ${familyOf(name)}${name === 'target_info' && key === 'TYPE' ? ' info' : rest}`];
    // Other comments are not allowed.
    if (line.startsWith('#')) return [];
    const exemplar = BUCKET.test(line) ? exemplars.next().value : undefined;
    return [exemplar === undefined ? line : `${line}${shownExemplar(exemplar)}`];
  });
  return `${[...lines, '# EOF'].join('\n')}\n`;
}

/** In OpenMetrics the names of samples, not that of their family, end with the type. */
function familyOf(name: string): string {
  if (name === 'target_info') return 'target';
  return name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : name;
}

function* exemplarsOf(all: ResourceMetrics): Generator<Exemplar | undefined, undefined> {
  for (const metric of all.scopeMetrics.flatMap(({ metrics }) => metrics)) {
    for (const { value } of metric.dataPoints) {
      if (typeof value !== 'object' || !('buckets' in value)) continue;
      const { exemplars = [] } = value as HistogramMetricData['dataPoints'][number]['value'] & { exemplars?: Exemplar[] };
      for (const bucket of value.buckets.counts.keys()) yield exemplars[bucket];
    }
  }
  return undefined;
}

/** Empty for a `traceparent` that names no trace. */
function shownExemplar({ traceparent, value, atMs }: Exemplar): string {
  const span = spanContextFrom({ traceparent });
  if (span === undefined) return '';
  return ` # {trace_id="${span.traceId}",span_id="${span.spanId}"} ${value} ${atMs / 1_000}`;
}
