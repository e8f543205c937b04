import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { closedWord } from './closed-word.ts';
import { ATTR, type AttributeKey, type CountKey, EVENT_STEP, SCOPE, type SpanName } from './names.ts';
import { carrierOf, contextFrom, linkFrom, type TraceCarrier } from './propagation.ts';

/**
 * After this time a segment ends and a linked one begins; milliseconds. A long task is visible while it runs, and tail sampling,
 * whose
 * decision window starts with the first span of a trace, has spans to decide on.
 */
export const SEGMENT_MS_MAX = 60_000;
/** Links at the start of a hop; further ones are dropped. Measured: 32 links cost 24 µs per span, none 4 µs. */
export const HOP_LINKS_MAX = 8;
/** Steps of one segment that become span events; further ones only change the attributes. */
export const HOP_STEPS_MAX = 64;
/** Counters of one hop; further names are ignored. */
export const HOP_COUNTS_MAX = 48;

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

export type HopAttributes = { readonly [K in AttributeKey]?: string | number | boolean | undefined };

export interface HopOptions {
  readonly kind: keyof typeof KINDS;
  /** Trace context of the message or request that caused this hop. Absent: the active span is the parent. */
  readonly parent?: TraceCarrier | undefined;
  /** Other causes, at most HOP_LINKS_MAX of them. */
  readonly links?: readonly TraceCarrier[];
  readonly attributes?: HopAttributes;
}

/** The work of one service for one task: one span per segment, never one per token. */
export interface Hop {
  /** Trace context for the messages and requests of this hop: the span of the current segment. Empty without a trace. */
  carrier(): TraceCarrier;
  /** Attributes of this and every later segment. */
  set(attributes: HopAttributes): void;
  /** Adds `n` to a counter that is set on the span when the segment ends and starts at 0 in the next one. */
  count(key: CountKey, n?: number): void;
  /** Keeps the largest value seen in the segment. */
  max(key: CountKey, value: number): void;
  /** Links the segment to a cause. Only the first and the last call count: a chunk of 600 tokens has two links. */
  link(carrier: TraceCarrier): void;
  /** Starts the next of several steps (a node of a graph): sets attributes of the segment and adds a span event. */
  step(attributes: HopAttributes): void;
  /** Runs `fn` with this hop as the active span, so that its log lines have the trace id. */
  run<T>(fn: () => T): T;
  /**
   * Ends the segment and starts a linked one, e.g. for `reconnect` or `input_required`. Called automatically after
   * SEGMENT_MS_MAX.
   */
  nextSegment(reason: string): void;
  end(): void;
  /**
   * Ends the hop with status ERROR. `reason` is a word of a closed list; a sentence becomes `other`. Not for a client that
   * disconnects.
   */
  fail(reason: string): void;
}

/** Starts a hop. Without an exporter this is one call of a no-op tracer, and the parent's context passes through. */
export function startHop(name: SpanName, options: HopOptions): Hop {
  const parent = options.parent === undefined ? context.active() : contextFrom(options.parent);
  const links = (options.links ?? []).slice(0, HOP_LINKS_MAX).flatMap(carrier => linkFrom(carrier) ?? []);
  const span = startSpan(name, options.kind, parent, { ...options.attributes, [ATTR.segment]: 1 }, links);
  return span.isRecording() ? new RecordingHop(name, options, parent, span) : new PassingHop(span, parent);
}

function startSpan(name: SpanName, kind: HopOptions['kind'], parent: Context, attributes: HopAttributes, links: Link[]): Span {
  // The SDK ignores `undefined` values; HopAttributes allows them so that callers need no conditions.
  const options = { kind: KINDS[kind], attributes: attributes as Attributes, links };
  return trace.getTracer(SCOPE).startSpan(name, options, parent);
}

/** A hop that is not sampled, or has no SDK. */
class PassingHop implements Hop {
  readonly #carrier: TraceCarrier;
  readonly #context: Context;

  constructor(span: Span, parent: Context) {
    this.#carrier = carrierOf(span.spanContext());
    this.#context = trace.setSpan(parent, span);
  }

  carrier(): TraceCarrier {
    return { ...this.#carrier };
  }

  run<T>(fn: () => T): T {
    return context.with(this.#context, fn);
  }

  set(): void {}
  count(): void {}
  max(): void {}
  link(): void {}
  step(): void {}
  nextSegment(): void {}
  end(): void {}
  fail(): void {}
}

class RecordingHop implements Hop {
  readonly #name: SpanName;
  readonly #kind: HopOptions['kind'];
  /** Parent of every segment: the caller's span. For a root hop the first segment, so that the trace id stays the same. */
  readonly #parent: Context;
  #attributes: HopAttributes;
  #span: Span;
  #segment = 1;
  #counts = new Map<CountKey, number>();
  #steps = 0;
  #linkedFirst = false;
  #lastLink: TraceCarrier | undefined;
  #timer: NodeJS.Timeout;
  #ended = false;

  constructor(name: SpanName, options: HopOptions, parent: Context, span: Span) {
    this.#name = name;
    this.#kind = options.kind;
    this.#attributes = options.attributes ?? {};
    this.#span = span;
    this.#parent = trace.getSpanContext(parent) === undefined ? trace.setSpanContext(parent, span.spanContext()) : parent;
    this.#timer = this.#startTimer();
  }

  carrier(): TraceCarrier {
    return carrierOf(this.#span.spanContext());
  }

  set(attributes: HopAttributes): void {
    if (this.#ended) return;
    this.#attributes = { ...this.#attributes, ...attributes };
    this.#span.setAttributes(attributes as Attributes);
  }

  step(attributes: HopAttributes): void {
    this.set(attributes);
    if (this.#ended || this.#steps >= HOP_STEPS_MAX) return;
    this.#steps += 1;
    this.#span.addEvent(EVENT_STEP, attributes as Attributes);
  }

  count(key: CountKey, n = 1): void {
    const before = this.#counts.get(key);
    if (before !== undefined || this.#counts.size < HOP_COUNTS_MAX) this.#counts.set(key, (before ?? 0) + n);
  }

  max(key: CountKey, value: number): void {
    const before = this.#counts.get(key);
    if (before === undefined ? this.#counts.size < HOP_COUNTS_MAX : value > before) this.#counts.set(key, value);
  }

  link(carrier: TraceCarrier): void {
    if (this.#linkedFirst) {
      this.#lastLink = carrier;
      return;
    }
    const link = linkFrom(carrier);
    if (link === undefined) return;
    this.#linkedFirst = true;
    this.#span.addLink(link);
  }

  run<T>(fn: () => T): T {
    return context.with(trace.setSpan(this.#parent, this.#span), fn);
  }

  nextSegment(reason: string): void {
    if (this.#ended) return;
    this.#endSegment({ [ATTR.segmentReason]: closedWord(reason) });
    const links: Link[] = [{ context: this.#span.spanContext() }];
    this.#segment += 1;
    const attributes = { ...this.#attributes, [ATTR.segment]: this.#segment };
    this.#span = startSpan(this.#name, this.#kind, this.#parent, attributes, links);
    this.#timer = this.#startTimer();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#endSegment({});
  }

  fail(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    const word = closedWord(reason);
    this.#span.setStatus({ code: SpanStatusCode.ERROR, message: word });
    this.#endSegment({ [ATTR.errorType]: word });
  }

  #startTimer(): NodeJS.Timeout {
    return setTimeout(() => this.nextSegment('age'), SEGMENT_MS_MAX).unref();
  }

  #endSegment(attributes: Attributes): void {
    clearTimeout(this.#timer);
    const last = this.#lastLink === undefined ? undefined : linkFrom(this.#lastLink);
    if (last !== undefined) this.#span.addLink(last);
    this.#span.setAttributes({ ...Object.fromEntries(this.#counts), ...attributes });
    this.#span.end();
    this.#counts = new Map();
    this.#steps = 0;
    this.#linkedFirst = false;
    this.#lastLink = undefined;
  }
}
