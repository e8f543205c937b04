/** W3C trace context of the span that created a message, carried in its headers and never rewritten on the way. */
export type TraceCarrier = { traceparent?: string; tracestate?: string };
