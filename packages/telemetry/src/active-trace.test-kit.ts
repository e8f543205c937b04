import { context, trace } from '@opentelemetry/api';
import { carrierOf, contextFrom, type TraceCarrier } from './propagation.ts';

/** The carrier of the active span; empty when no span is active. */
export function currentTrace(): TraceCarrier {
  return carrierOf(trace.getSpanContext(context.active()));
}

/** Runs `fn`, and everything it awaits, within the carrier's trace. */
export function withTrace<T>(carrier: TraceCarrier, fn: () => T): T {
  return context.with(contextFrom(carrier), fn);
}
