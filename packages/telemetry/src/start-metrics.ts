import type { Attributes, MeterProvider as MeterProviderApi } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { LABEL } from './names.ts';

/** Different label sets of one metric; further ones are added up under `otel_metric_overflow`. */
export const SERIES_PER_METRIC_MAX = 500;

export interface MetricsReader {
  readonly provider: MeterProviderApi & { shutdown(): Promise<void> };
  readonly resource: Resource;
  text(): Promise<string>;
}

/** A meter provider whose points are read as Prometheus text by our own route; the exporter's own server is never started. */
export async function startMetrics(attributes: Attributes): Promise<MetricsReader> {
  const [sdk, { PrometheusExporter, PrometheusSerializer }, resources] = await Promise.all([
    import('@opentelemetry/sdk-metrics'),
    import('@opentelemetry/exporter-prometheus'),
    import('@opentelemetry/resources'),
  ]);
  // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win over what the code says, as the specification has it.
  const resource = resources
    .defaultResource()
    .merge(resources.resourceFromAttributes(attributes))
    .merge(resources.detectResources({ detectors: [resources.envDetector] }));
  const reader = new PrometheusExporter({ preventServerStart: true });
  const provider = new sdk.MeterProvider({
    resource,
    readers: [reader],
    views: [
      {
        instrumentName: '*',
        attributesProcessors: [sdk.createAllowListAttributesProcessor(Object.values(LABEL))],
        aggregationCardinalityLimit: SERIES_PER_METRIC_MAX,
      },
    ],
  });
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  const text = async () => serializer.serialize((await reader.collect()).resourceMetrics);
  return { provider, resource, text };
}
