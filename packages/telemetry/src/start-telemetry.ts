import { context, diag, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import type { Logger } from './logger.ts';
import { createHopMetrics, type HopMetrics } from './metrics.ts';
import { SCOPE, SERVICE_NAMESPACE } from './names.ts';
import { observeProcess } from './process-metrics.ts';
import { reportSdkFaults } from './sdk-faults.ts';
import { startMetrics } from './start-metrics.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** Bound on flushing the last spans at shutdown; milliseconds. An unreachable collector must not delay a drain. */
export const TELEMETRY_SHUTDOWN_MS_MAX = 2_000;
/** Longer span attributes are truncated; UTF-16 units. Attributes of megabytes have exhausted the memory of processes. */
export const ATTRIBUTE_CHARS_MAX = 512;
export const SPAN_ATTRIBUTES_MAX = 96;
export const SPAN_LINKS_MAX = 16;

export interface TelemetryOptions {
  /** `relay`, `ingress`, …: the label `service`, and `service.name` unless OTEL_SERVICE_NAME is set. */
  readonly service: string;
  readonly version: string;
  readonly instance: string;
  /** The process environment. The endpoint is read from here; the SDK itself reads the other OTEL_* names. */
  readonly env: Env;
  /** Receives faults of the SDK (an unreachable collector), at most one line a minute. */
  readonly log?: Logger;
}

export interface Telemetry {
  readonly metrics: HopMetrics;
  /** The URL to which spans are exported. Absent: no spans are created. */
  readonly tracesUrl?: string;
  /** All metrics of the process in the Prometheus text format 0.0.4. */
  metricsText(): Promise<string>;
  /** Exports the remaining spans within TELEMETRY_SHUTDOWN_MS_MAX and unregisters everything. Never rejects. */
  shutdown(): Promise<void>;
}

/**
 * Starts metrics (always: they cost nothing until `/metrics` is read) and tracing (only with an OTLP endpoint). Without an
 * endpoint it
 * creates no server, timer or connection; the exporters are imported on first need. Throws for an unsupported endpoint or
 * protocol.
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
      const unsent = () => options.log?.warn('last spans not exported');
      await withinMs(Promise.all([stopTracing(), prometheus.provider.shutdown()]), TELEMETRY_SHUTDOWN_MS_MAX).catch(unsent);
      for (const api of [trace, metrics, propagation, context, diag]) api.disable();
    },
  };
}

/**
 * The traces endpoint of the OpenTelemetry environment; undefined when tracing is off. Throws for an unsupported protocol or URL.
 */
export function tracesUrlFrom(env: Env): string | undefined {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return undefined;
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const endpoint = own || (base ? `${base.replace(/\/+$/, '')}/v1/traces` : undefined);
  if (endpoint === undefined) return undefined;
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/protobuf';
  if (protocol !== 'http/protobuf') {
    throw new Error(`OTEL_EXPORTER_OTLP_PROTOCOL is "${protocol}": only http/protobuf is supported (port 4318 of a collector)`);
  }
  if (!URL.canParse(endpoint) || !/^https?:/.test(endpoint)) {
    throw new Error('OTEL_EXPORTER_OTLP_ENDPOINT must be an http:// or https:// URL');
  }
  return endpoint;
}

type Resource = Awaited<ReturnType<typeof startMetrics>>['resource'];

// Importing sdk-node takes 250 ms and 20 MB (it includes gRPC, Zipkin and YAML), so it is imported only for an export.
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
    // The process detector would export the command line, which can contain credentials.
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
