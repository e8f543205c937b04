import type { Attributes, MeterProvider as MeterProviderApi } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { LABEL } from './names.ts';

/** Label sets of one metric; further ones are summed under `otel_metric_overflow`. */
export const SERIES_PER_METRIC_MAX = 500;

export interface MetricsReader {
  readonly provider: MeterProviderApi & { shutdown(): Promise<void> };
  readonly resource: Resource;
  text(): Promise<string>;
}

/** A meter provider whose metrics a service serves on its own `/metrics` route; the exporter's server is never started. */
export async function startMetrics(attributes: Attributes): Promise<MetricsReader> {
  const [sdk, { PrometheusExporter, PrometheusSerializer }, resources] = await Promise.all([
    import('@opentelemetry/sdk-metrics'),
    import('@opentelemetry/exporter-prometheus'),
    import('@opentelemetry/resources'),
  ]);
  // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME override attributes set in code, as the specification requires.
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
