export { agentLabel, CLOSED_WORD_CHARS_MAX, closedWord, errorWord } from './closed-word.ts';
export type { Hop, HopAttributes, HopOptions } from './hop-span.ts';
export { HOP_LINKS_MAX, SEGMENT_MS_MAX, startHop } from './hop-span.ts';
export type { LogFields, Logger, LoggerOptions, LogLevel, LogMethod } from './logger.ts';
export { createLogger, LOG_LEVELS, taskLogger } from './logger.ts';
export type { CounterOf, GaugeOf, HopMetrics, Labels, LatencyOf } from './metrics.ts';
export { createHopMetrics, LATENCY_BUCKETS_S } from './metrics.ts';
export type { A2aMethod, AttributeKey, CountKey, LogKey, SpanName } from './names.ts';
export {
  A2A_METHOD,
  ATTR,
  COUNT,
  chatSpan,
  DESTINATION,
  executeToolSpan,
  invokeAgentSpan,
  LABEL,
  METRIC,
  SPAN,
} from './names.ts';
export type { TraceCarrier } from './propagation.ts';
export { carrierOf, contextFrom, linkFrom } from './propagation.ts';
export type { Env, Telemetry, TelemetryOptions } from './start-telemetry.ts';
export { startTelemetry, TELEMETRY_SHUTDOWN_MS_MAX } from './start-telemetry.ts';
