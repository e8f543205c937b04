import { type Attributes, type HrTime, type MeterProvider as MeterProviderApi, ValueType } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type {
  GaugeMetricData,
  HistogramMetricData,
  MetricProducer,
  PushMetricExporter,
  ResourceMetrics,
  SumMetricData,
} from '@opentelemetry/sdk-metrics';
import type { Exporters } from './exporters.ts';
import { type Histogram, hrTimeNow } from './histogram.ts';
import { LABELS, unitSuffix } from './metric-registry.ts';
import { type Exported, type ReadMetric, SERIES_PER_METRIC_MAX } from './metrics.ts';
import { SCOPE } from './names.ts';
import { type MetricsFormat, openMetricsText } from './open-metrics.ts';
import { importOptional } from './optional-packages.ts';

interface MetricsReader extends Exported {
  readonly provider: MeterProviderApi & { shutdown(): Promise<void> };
  readonly resource: Resource;
  text(format?: MetricsFormat): Promise<string>;
}

/**
 * A meter provider whose metrics a service serves on its own `/metrics` route and, with `metricsUrl`, pushes to a collector. The Prometheus
 * exporter's server is never started.
 */
export async function startMetrics(
  attributes: Attributes,
  { servesMetrics, metricsUrl, metricsIntervalMs }: Pick<Exporters, 'servesMetrics' | 'metricsUrl' | 'metricsIntervalMs'> = {
    servesMetrics: true,
  },
  onPushFailed: (error: unknown) => void = () => {},
  fastPaths = true,
): Promise<MetricsReader> {
  const [sdk, { PrometheusExporter, PrometheusSerializer }, resources] = await importOptional(
    'export metrics',
    ['exporter-prometheus', 'resources', 'sdk-metrics'],
    () =>
      Promise.all([
        import('@opentelemetry/sdk-metrics'),
        import('@opentelemetry/exporter-prometheus'),
        import('@opentelemetry/resources'),
      ]),
  );
  // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME override attributes set in code, as the specification requires.
  const resource = resources
    .defaultResource()
    .merge(resources.resourceFromAttributes(attributes))
    .merge(resources.detectResources({ detectors: [resources.envDetector] }));
  const counted = { histograms: [] as Histogram[], readMetrics: [] as ReadMetric[] };
  const producers = [countedMetricsProducer(sdk, resource, counted)];
  const reader = servesMetrics ? new PrometheusExporter({ preventServerStart: true, metricProducers: producers }) : undefined;
  const provider = new sdk.MeterProvider({
    resource,
    readers: [
      ...(reader === undefined ? [] : [reader]),
      ...(metricsUrl === undefined ? [] : [await pushReader(metricsUrl, metricsIntervalMs, producers, onPushFailed)]),
    ],
    views: [
      {
        instrumentName: '*',
        attributesProcessors: [sdk.createAllowListAttributesProcessor(Object.keys(LABELS))],
        aggregationCardinalityLimit: SERIES_PER_METRIC_MAX,
      },
    ],
  });
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  const text = async (format: MetricsFormat = 'text') => {
    if (reader === undefined) return format === 'text' ? '# OTEL_METRICS_EXPORTER excludes prometheus\n' : '# EOF\n';
    const all = withUnits((await reader.collect()).resourceMetrics);
    const serialized = serializer.serialize(all);
    return format === 'text' ? serialized : openMetricsText(serialized, all);
  };
  return { provider, resource, text, meter: provider.getMeter(SCOPE), fastPaths, ...counted };
}

/**
 * Adds the histograms, sums and observed gauges of this process to what the SDK collects. Temporality is cumulative, whichever a collector
 * prefers.
 */
function countedMetricsProducer(
  { AggregationTemporality, DataPointType }: typeof import('@opentelemetry/sdk-metrics'),
  resource: Resource,
  counted: Pick<Exported, 'histograms' | 'readMetrics'>,
): MetricProducer {
  const aggregationTemporality = AggregationTemporality.CUMULATIVE;
  const histogramData = ({ name, unit, description, series }: Histogram, endTime: HrTime): HistogramMetricData => {
    const dataPoints = Array.from(series, one => ({
      attributes: one.attributes,
      startTime: one.startTime,
      endTime,
      value: one.read(),
    }));
    const descriptor = { name, unit, description, valueType: ValueType.DOUBLE };
    return { descriptor, dataPointType: DataPointType.HISTOGRAM, aggregationTemporality, dataPoints };
  };
  const readData = (
    { name, unit, description, kind, startTime, read }: ReadMetric,
    endTime: HrTime,
  ): GaugeMetricData | SumMetricData => {
    const descriptor = { name, unit, description, valueType: ValueType.DOUBLE };
    const isGauge = kind === 'gauge';
    const dataPoints = Array.from(read(), ([value, attributes]) => ({
      attributes,
      startTime: isGauge ? endTime : startTime,
      endTime,
      value,
    }));
    const data = { descriptor, aggregationTemporality, dataPoints };
    return isGauge
      ? { ...data, dataPointType: DataPointType.GAUGE }
      : { ...data, dataPointType: DataPointType.SUM, isMonotonic: kind === 'counter' };
  };
  return {
    collect: async () => {
      const now = hrTimeNow();
      const histograms = counted.histograms.map(histogram => histogramData(histogram, now));
      const others = counted.readMetrics.map(metric => readData(metric, now));
      const metrics = [...histograms, ...others].filter(({ dataPoints }) => dataPoints.length > 0);
      return { resourceMetrics: { resource, scopeMetrics: [{ scope: { name: SCOPE }, metrics }] }, errors: [] };
    },
  };
}

async function pushReader(
  url: string,
  intervalMs: number | undefined,
  metricProducers: MetricProducer[],
  onFailed: (error: unknown) => void,
) {
  const [{ PeriodicExportingMetricReader }, { OTLPMetricExporter }] = await importOptional(
    'push metrics',
    ['exporter-metrics-otlp-proto', 'sdk-metrics'],
    () => Promise.all([import('@opentelemetry/sdk-metrics'), import('@opentelemetry/exporter-metrics-otlp-proto')]),
  );
  // The reader reports a failed push as text, without its code.
  class ReportingExporter extends OTLPMetricExporter {
    override export(...[pushed, done]: Parameters<PushMetricExporter['export']>): void {
      super.export(pushed, result => {
        if (result.code !== 0) onFailed(result.error);
        done(result);
      });
    }
  }
  return new PeriodicExportingMetricReader({
    exporter: new ReportingExporter({ url }),
    metricProducers,
    ...(intervalMs !== undefined && { exportIntervalMillis: intervalMs, exportTimeoutMillis: intervalMs }),
  });
}

/**
 * Gives metrics the names that the collector's Prometheus exporter would give them, so that a dashboard fits both: the name ends with the
 * unit, as in `hopline_hop_duration_seconds`.
 */
function withUnits(all: ResourceMetrics): ResourceMetrics {
  const scopeMetrics = all.scopeMetrics.map(scope => ({
    ...scope,
    metrics: scope.metrics.map(metric => {
      const { name, unit } = metric.descriptor;
      const suffix = unitSuffix(unit);
      const descriptor = { ...metric.descriptor, name: suffix === undefined ? name : `${name}.${suffix}`, unit: suffix ?? '' };
      return { ...metric, descriptor };
    }),
  }));
  return { ...all, scopeMetrics: scopeMetrics as ResourceMetrics['scopeMetrics'] };
}
