export type { ActiveWork } from './active-work.ts';
export { activeWork, inWork, withModelCalls, workAttributes, workLinks } from './active-work.ts';
export { agentLabel, CLOSED_WORD_CHARS_MAX, closedWord, errorWord, snakeWord } from './closed-word.ts';
export type { Env } from './exporters.ts';
export type { Hop, HopAttributes, HopOptions, Receive } from './hop-span.ts';
export { HOP_LINKS_MAX, SEGMENT_MS_MAX, startHop } from './hop-span.ts';
export { LINE } from './lines.ts';
export type { LogFields, LogFormat, Logger, LoggerOptions, LogLevel, LogMethod } from './logger.ts';
export { createLogger, flushLog, LOG_FORMATS, LOG_LEVELS, setLogLevel, taskLogger } from './logger.ts';
export { messagingAttributes } from './messaging.ts';
export type { Binding, CheckName } from './metric-registry.ts';
export type { CounterOf, GaugeOf, HistogramOf, HopMetrics } from './metrics.ts';
export { createHopMetrics, LATENCY_BUCKETS_S, processMetrics, startAgentAtZero } from './metrics.ts';
export type { A2aMethod, AttributeKey, CountKey, HoplineMethod, LogKey, SpanName } from './names.ts';
export { A2A_METHOD, ATTR, COUNT, chatSpan, DESTINATION, executeToolSpan, invokeAgentSpan, SPAN } from './names.ts';
export type { MetricsFormat } from './open-metrics.ts';
export { METRICS_TYPES, metricsFormatFor } from './open-metrics.ts';
export type { OwnerNames, PartyLabels } from './parties.ts';
export { ownerAttributes, ownerFields } from './parties.ts';
export type { TraceCarrier } from './propagation.ts';
export { carrierOf, contextFrom, correlationOf, fromCaller, inTrace, spanContextFrom, toCallee } from './propagation.ts';
export type { RemoteSpan } from './remote-span.ts';
export { ShardLines } from './shard-lines.ts';
export type { Telemetry, TelemetryOptions } from './start-telemetry.ts';
export {
  ATTRIBUTE_CHARS_MAX,
  SPAN_ATTRIBUTES_MAX,
  startTelemetry,
  TELEMETRY_SHUTDOWN_MS_MAX,
} from './start-telemetry.ts';
export { withinMs } from './within-ms.ts';
export { redeliveryCause, startWorkHop, takenWork } from './work-hop.ts';
