import { context, diag, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import type { Logger } from './logger.ts';
import { createHopMetrics, type HopMetrics } from './metrics.ts';
import { SCOPE, SERVICE_NAMESPACE } from './names.ts';
import { observeProcess } from './process-metrics.ts';
import { reportSdkFaults } from './sdk-faults.ts';
import { startMetrics } from './start-metrics.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** Flushing the last spans may take this long when the process ends; milliseconds. A dead collector must not delay a drain. */
export const TELEMETRY_SHUTDOWN_MS_MAX = 2_000;
/** A span attribute is cut here; UTF-16 units. Megabytes in attributes have killed processes. */
export const ATTRIBUTE_CHARS_MAX = 512;
export const SPAN_ATTRIBUTES_MAX = 96;
export const SPAN_LINKS_MAX = 16;

export interface TelemetryOptions {
  /** `relay`, `ingress`, …: `service.name` unless OTEL_SERVICE_NAME says otherwise, and the label `service`. */
  readonly service: string;
  readonly version: string;
  readonly instance: string;
  /** The process environment, as main.ts got it. The endpoint is read from here; the SDK itself reads the other OTEL_* names. */
  readonly env: Env;
  /** Where faults of the SDK go (a collector that does not answer), at most one line a minute. */
  readonly log?: Logger;
}

export interface Telemetry {
  readonly metrics: HopMetrics;
  /** URL that spans are sent to; absent: spans are not even made. */
  readonly tracesUrl?: string;
  /** Prometheus text format 0.0.4 of every metric of the process. */
  metricsText(): Promise<string>;
  /** Sends what is left, for at most TELEMETRY_SHUTDOWN_MS_MAX, and unregisters everything. Never rejects. */
  shutdown(): Promise<void>;
}

/**
 * Starts metrics (always: they are only text until somebody reads `/metrics`) and tracing (only with an OTLP endpoint).
 * No server, no timer and no connection is made without an endpoint; the exporters are imported here, on first need.
 * Throws when the endpoint or the OTLP protocol cannot be used.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  const tracesUrl = tracesUrlFrom(options.env);
  const attributes = {
    'service.name': options.service,
    'service.namespace': SERVICE_NAMESPACE,
    'service.version': options.version,
    'service.instance.id': options.instance,
  };
  const contextManager = new AsyncLocalStorageContextManager().enable();
  if (options.log !== undefined) reportSdkFaults(options.log);
  const prometheus = await startMetrics(attributes);
  const meter = prometheus.provider.getMeter(SCOPE, options.version);
  observeProcess(meter, options.service);
  metrics.setGlobalMeterProvider(prometheus.provider);
  let stopTracing = async (): Promise<void> => {};
  if (tracesUrl === undefined) context.setGlobalContextManager(contextManager);
  else stopTracing = await startTracing(tracesUrl, prometheus.resource, contextManager);
  return {
    metrics: createHopMetrics(options.service, meter),
    ...(tracesUrl === undefined ? {} : { tracesUrl }),
    metricsText: prometheus.text,
    shutdown: async () => {
      const unsent = () => options.log?.warn('the last spans were not exported');
      await withinMs(Promise.all([stopTracing(), prometheus.provider.shutdown()]), TELEMETRY_SHUTDOWN_MS_MAX).catch(unsent);
      for (const api of [trace, metrics, propagation, context, diag]) api.disable();
    },
  };
}

/** Where spans go by the OpenTelemetry environment, or undefined for nowhere. Throws on a protocol or URL that is not supported. */
export function tracesUrlFrom(env: Env): string | undefined {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return undefined;
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const endpoint = own || (base ? `${base.replace(/\/+$/, '')}/v1/traces` : undefined);
  if (endpoint === undefined) return undefined;
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/protobuf';
  if (protocol !== 'http/protobuf') {
    throw new Error(
      `OTEL_EXPORTER_OTLP_PROTOCOL is "${protocol}": only http/protobuf is supported (collectors listen for it on port 4318)`,
    );
  }
  if (!URL.canParse(endpoint) || !/^https?:/.test(endpoint)) {
    throw new Error('OTEL_EXPORTER_OTLP_ENDPOINT must be a URL that begins with http:// or https://');
  }
  return endpoint;
}

type Resource = Awaited<ReturnType<typeof startMetrics>>['resource'];

// sdk-node takes 250 ms and 20 MB to import (it brings gRPC, Zipkin and YAML along): only who exports pays for it.
async function startTracing(
  url: string,
  resource: Resource,
  contextManager: AsyncLocalStorageContextManager,
): Promise<() => Promise<void>> {
  const [{ NodeSDK }, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/sdk-node'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
  ]);
  const sdk = new NodeSDK({
    resource,
    // The process detector would export the command line, which can hold credentials.
    autoDetectResources: false,
    contextManager,
    traceExporter: new OTLPTraceExporter({ url }),
    spanLimits: {
      attributeValueLengthLimit: ATTRIBUTE_CHARS_MAX,
      attributeCountLimit: SPAN_ATTRIBUTES_MAX,
      linkCountLimit: SPAN_LINKS_MAX,
    },
    // Empty lists: otherwise the SDK exports metrics and logs to localhost by default.
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  return () => sdk.shutdown();
}

async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not done after ${ms} ms`)), ms);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
