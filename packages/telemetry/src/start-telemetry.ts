import { context, diag, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { type LostSpans, SPAN_DELAY_MS, SPAN_QUEUE_MAX } from './bounded-spans.ts';
import { type Env, exportersFrom } from './exporters.ts';
import { type Logger, onLogLine } from './logger.ts';
import { createHopMetrics, type HopMetrics, setProcessMetrics } from './metrics.ts';
import { SERVICE_PREFIX } from './names.ts';
import type { MetricsFormat } from './open-metrics.ts';
import { importOptional } from './optional-packages.ts';
import { observeProcess } from './process-metrics.ts';
import { type RemoteSpan, readableSpan } from './remote-span.ts';
import { exportFault, reportSdkFaults } from './sdk-faults.ts';
import { spanIds } from './span-ids.ts';
import { startMetrics } from './start-metrics.ts';
import { withinMs } from './within-ms.ts';

/** Bound on flushing the last spans at shutdown. An unreachable collector must not delay a drain. */
export const TELEMETRY_SHUTDOWN_MS_MAX = 2_000;
/** UTF-16 units beyond which span attributes are truncated. Attributes of megabytes have exhausted the memory of processes. */
export const ATTRIBUTE_CHARS_MAX = 512;
export const SPAN_ATTRIBUTES_MAX = 96;
export const SPAN_LINKS_MAX = 16;

export type TelemetryOptions = {
  /** `relay`, `ingress`, …: the label `service`, and with `hopline-` the `service.name` unless OTEL_SERVICE_NAME is set. */
  readonly service: string;
  /** Name of the cluster, for `service.namespace`. Default: `hopline`. */
  readonly cluster?: string | undefined;
  readonly version: string;
  readonly instance: string;
  /** The process environment. The endpoint is read from here; the SDK itself reads the other OTEL_* names. */
  readonly env: Env;
  /** HOPLINE_FAST_PATHS. False: the SDK counts sums and histograms. */
  readonly fastPaths?: boolean;
  /** Receives faults of the SDK (an unreachable collector), at most one line a minute. */
  readonly log?: Logger;
};

export interface Telemetry {
  readonly metrics: HopMetrics;
  /** The URL to which spans are exported. Absent: no spans are created. */
  readonly tracesUrl?: string;
  /** Exports a span of another process, which has no exporter. Absent: no spans are created. */
  readonly exportSpan?: (span: RemoteSpan) => void;
  /** All metrics of the process, by default in the Prometheus text format 0.0.4. */
  metricsText(format?: MetricsFormat): Promise<string>;
  /** Exports the remaining spans within TELEMETRY_SHUTDOWN_MS_MAX and unregisters everything. Never rejects. */
  shutdown(): Promise<void>;
}

/**
 * Starts metrics (always, because they cost nothing until they are read) and tracing (only with an OTLP endpoint). Without an endpoint it
 * creates no server, timer or connection; the exporters are imported on first need. Throws for an unsupported exporter, endpoint or
 * protocol.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  const { service, env, log } = options;
  const exporters = exportersFrom(env);
  const { tracesUrl } = exporters;
  const attributes = {
    'service.name': `${SERVICE_PREFIX}-${service}`,
    'service.namespace': options.cluster ?? SERVICE_PREFIX,
    'service.version': options.version,
    'service.instance.id': options.instance,
  };
  const contextManager = new AsyncLocalStorageContextManager().enable();
  const faults = log && reportSdkFaults(log, spans => hopMetrics.spansLost.add(spans, { reason: 'export_failed' }));
  const reader = await startMetrics(
    attributes,
    exporters,
    error => faults?.lost('metrics', exportFault(error), 0),
    options.fastPaths,
  );
  const stopObserving = observeProcess(reader.meter, service, options.version);
  metrics.setGlobalMeterProvider(reader.provider);
  const hopMetrics = createHopMetrics(service, reader);
  setProcessMetrics(hopMetrics);
  const { logsUrl } = exporters;
  const logs =
    logsUrl === undefined || log === undefined
      ? undefined
      : await (await import('./export-logs.ts')).startLogExport(logsUrl, reader.resource, error =>
          faults?.lost('logs', exportFault(error), 0),
        );
  if (logs !== undefined && log !== undefined) onLogLine(log, logs.line);
  const onLost = ({ reason, count, error }: LostSpans) => {
    hopMetrics.spansLost.add(count, { reason });
    faults?.lost('traces', error === undefined ? reason : exportFault(error), count);
  };
  let tracing: Tracing = { stop: async () => {}, waiting: () => 0, exportSpan: () => {} };
  if (tracesUrl === undefined) context.setGlobalContextManager(contextManager);
  else tracing = await startTracing({ url: tracesUrl, env, resource: reader.resource, contextManager, onLost });
  return {
    metrics: hopMetrics,
    ...(tracesUrl === undefined ? {} : { tracesUrl, exportSpan: tracing.exportSpan }),
    metricsText: reader.text,
    shutdown: async () => {
      // Each signal may have a collector of its own: one that fails at once must not cut off the last lines of another.
      const ended = Promise.allSettled([tracing.stop(), reader.provider.shutdown(), logs?.stop()]);
      await withinMs(ended, TELEMETRY_SHUTDOWN_MS_MAX).catch(() => {});
      const unsent = tracing.waiting();
      if (unsent > 0) onLost({ reason: 'export_failed', count: unsent });
      faults?.flush();
      stopObserving();
      setProcessMetrics(undefined);
      for (const api of [trace, metrics, propagation, context, diag]) api.disable();
    },
  };
}

type Tracing = {
  stop(): Promise<void>;
  /** Spans that wait for the collector. */
  waiting(): number;
  exportSpan: (span: RemoteSpan) => void;
};

type TracingOptions = {
  url: string;
  env: Env;
  resource: Awaited<ReturnType<typeof startMetrics>>['resource'];
  contextManager: AsyncLocalStorageContextManager;
  onLost: (lost: LostSpans) => void;
};

// Importing sdk-node takes 250 ms and 20 MB (it includes gRPC, Zipkin and YAML), so it is imported only for an export.
async function startTracing({ url, env, resource, contextManager, onLost }: TracingOptions): Promise<Tracing> {
  const [{ NodeSDK }, { OTLPTraceExporter }, { BatchSpanProcessor }, { BoundedSpans }] = await importOptional(
    'export spans',
    ['exporter-trace-otlp-proto', 'sdk-node', 'sdk-trace'],
    () =>
      Promise.all([
        import('@opentelemetry/sdk-node'),
        import('@opentelemetry/exporter-trace-otlp-proto'),
        import('@opentelemetry/sdk-trace'),
        import('./bounded-spans.ts'),
      ]),
  );
  const maxQueueSize = positive(env.OTEL_BSP_MAX_QUEUE_SIZE) ?? SPAN_QUEUE_MAX;
  const spans = new BoundedSpans(onLost, maxQueueSize);
  const batch = new BatchSpanProcessor({
    exporter: spans.exporter(new OTLPTraceExporter({ url })),
    maxQueueSize,
    scheduledDelayMillis: positive(env.OTEL_BSP_SCHEDULE_DELAY) ?? SPAN_DELAY_MS,
    ...optional('maxExportBatchSize', env.OTEL_BSP_MAX_EXPORT_BATCH_SIZE),
    ...optional('exportTimeoutMillis', env.OTEL_BSP_EXPORT_TIMEOUT),
  });
  const processor = spans.processor(batch);
  const sdk = new NodeSDK({
    resource,
    // The process detector would export the command line, which can contain credentials.
    autoDetectResources: false,
    contextManager,
    spanProcessors: [processor],
    idGenerator: spanIds,
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
  const exportSpan = (span: RemoteSpan) => processor.onEnd(readableSpan(span, resource));
  return { stop: () => sdk.shutdown(), waiting: () => spans.waiting, exportSpan };
}

function positive(text: string | undefined): number | undefined {
  const value = Number(text);
  return Number.isInteger(value) && value > 0 ? value : undefined;
}

function optional<K extends string>(key: K, text: string | undefined): { [key in K]?: number } {
  const value = positive(text);
  return (value === undefined ? {} : { [key]: value }) as { [key in K]?: number };
}
