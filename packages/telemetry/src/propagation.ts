import {
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
} from '@opentelemetry/api';

/** W3C trace context as message headers. The names are lower case because NATS compares header names byte by byte. */
export type TraceCarrier = { traceparent?: string; tracestate?: string };

/** W3C Trace Context level 1, section 3.3.1.1: longer lists may be dropped. */
export const TRACESTATE_CHARS_MAX = 512;

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const VERSION_INVALID = 'ff';
const VERSION_KNOWN = '00';
const SAMPLED_BIT = 0x01;

/**
 * Reads a carrier by the rules of W3C Trace Context: a malformed traceparent counts as absent, an unknown version may have more
 * fields. Independent of the SDK's propagator, so that a context also passes through services without an exporter.
 */
export function spanContextFrom(carrier: TraceCarrier): SpanContext | undefined {
  const fields = carrier.traceparent === undefined ? null : TRACEPARENT.exec(carrier.traceparent);
  if (fields === null) return undefined;
  const [, version, traceId, spanId, flags, more] = fields as unknown as [string, string, string, string, string, string?];
  if (version === VERSION_INVALID || (version === VERSION_KNOWN && more !== undefined)) return undefined;
  const found: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & SAMPLED_BIT, isRemote: true };
  if (!isSpanContextValid(found)) return undefined;
  const state = carrier.tracestate;
  if (state !== undefined && state !== '' && state.length <= TRACESTATE_CHARS_MAX) found.traceState = createTraceState(state);
  return found;
}

/** The carrier of a span context; empty when the context is invalid (no trace, no exporter). */
export function carrierOf(spanContext: SpanContext | undefined): TraceCarrier {
  if (spanContext === undefined || !isSpanContextValid(spanContext)) return {};
  const flags = (spanContext.traceFlags & SAMPLED_BIT).toString(16).padStart(2, '0');
  const carrier: TraceCarrier = { traceparent: `${VERSION_KNOWN}-${spanContext.traceId}-${spanContext.spanId}-${flags}` };
  const state = spanContext.traceState?.serialize();
  if (state !== undefined && state !== '') carrier.tracestate = state;
  return carrier;
}

/**
 * A context whose active span is the carrier's. An empty or malformed carrier gives the root context, never the active parent.
 */
export function contextFrom(carrier: TraceCarrier): Context {
  const found = spanContextFrom(carrier);
  return found === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, found);
}

/** Runs `fn` within the carrier's trace, so that its log lines have the trace id. */
export function inTrace<T>(carrier: TraceCarrier | undefined, fn: () => T): T {
  return context.with(contextFrom(carrier ?? {}), fn);
}

/** Member of `tracestate` with the id of the span that sends a request, where `traceparent` names a span that is already exported. */
const CALLER_MEMBER = 'hopline';
const SPAN_ID = /^[0-9a-f]{16}$/;

/** The trace context of a request to a remote agent. `span`: the span of the turn, which the remote agent can link to. ADR 246. */
export function toCallee(carrier: TraceCarrier, span: TraceCarrier): TraceCarrier {
  const caller = spanContextFrom(span);
  if (caller === undefined || carrier.traceparent === undefined) return carrier;
  const rest = createTraceState(carrier.tracestate).unset(CALLER_MEMBER);
  const tracestate = rest.set(CALLER_MEMBER, caller.spanId).serialize();
  return tracestate.length > TRACESTATE_CHARS_MAX ? carrier : { ...carrier, tracestate };
}

/** Parent and links of a span for a request that may come from the turn of another Hopline. The parent has no member of ours. */
export function fromCaller(carrier: TraceCarrier): { parent: TraceCarrier; links: readonly TraceCarrier[] } {
  const found = spanContextFrom(carrier);
  const spanId = found?.traceState?.get(CALLER_MEMBER);
  if (found?.traceState === undefined || spanId === undefined) return { parent: carrier, links: [] };
  const parent = carrierOf({ ...found, traceState: found.traceState.unset(CALLER_MEMBER) });
  return { parent, links: SPAN_ID.test(spanId) ? [carrierOf({ ...found, spanId })] : [] };
}

const CORRELATION_ID = /^[\w.:-]{1,64}$/;

/** A client's own id of its request (S4-9), from the request's metadata; undefined for a value that may be content. */
export function correlationOf(metadata: { readonly [key: string]: unknown } | undefined): string | undefined {
  const id = metadata?.correlationId;
  return typeof id === 'string' && CORRELATION_ID.test(id) ? id : undefined;
}
