import type { Attributes, HrTime, SpanKind, SpanStatus } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

const NANOS_PER_S = 1_000_000_000;

/** A span that another process has ended, and that this process exports as its own. `scope`: name of its tracer. */
export type RemoteSpan = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  /** Ids of other spans of the trace. */
  linkIds?: readonly string[];
  name: string;
  kind: SpanKind;
  startTime: HrTime;
  endTime: HrTime;
  attributes: Attributes;
  status: SpanStatus;
  scope: string;
};

/** A sampled span as the processors of the SDK take it. */
export function readableSpan(span: RemoteSpan, resource: ReadableSpan['resource']): ReadableSpan {
  const { traceId, spanId, parentSpanId, linkIds = [], name, kind, startTime, endTime, attributes, status, scope } = span;
  const contextOf = (id: string) => ({ traceId, spanId: id, traceFlags: 1 });
  const spanContext = contextOf(spanId);
  const nanos = (endTime[0] - startTime[0]) * NANOS_PER_S + endTime[1] - startTime[1];
  return {
    name,
    kind,
    spanContext: () => spanContext,
    ...(parentSpanId !== undefined && { parentSpanContext: { ...contextOf(parentSpanId), isRemote: true } }),
    startTime,
    endTime,
    duration: [Math.floor(nanos / NANOS_PER_S), nanos % NANOS_PER_S],
    status,
    attributes,
    links: linkIds.map(id => ({ context: contextOf(id) })),
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: scope },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}
