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
 * A segment ends and a linked one begins after this; milliseconds. A long task shows up while it runs, and tail sampling, whose
 * decision window counts from the first span of a trace, can judge what it has.
 */
export const SEGMENT_MS_MAX = 60_000;
/** Links a hop starts with; more are left out. Measured: 32 links cost 24 µs per span, none 4 µs. */
export const HOP_LINKS_MAX = 8;
/** Steps of one segment that become span events; further ones are only the current attributes. */
export const HOP_STEPS_MAX = 64;
/** Different counters of one hop; further names are ignored. */
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
  /** Creation context of the message or request that caused this hop. Absent: the active span is the parent. */
  readonly parent?: TraceCarrier | undefined;
  /** Other causes, at most HOP_LINKS_MAX of them. */
  readonly links?: readonly TraceCarrier[];
  readonly attributes?: HopAttributes;
}

/** What one service did for one task, as one span per segment, never one per token. */
export interface Hop {
  /** Trace context for the messages and requests this hop makes: the current segment's span. Empty when there is no trace at all. */
  carrier(): TraceCarrier;
  /** Attributes of this and every later segment. */
  set(attributes: HopAttributes): void;
  /** Adds `n` to a number that is set on the span when the segment ends, and starts at 0 in the next one. */
  count(key: CountKey, n?: number): void;
  /** Keeps the largest value seen in the segment. */
  max(key: CountKey, value: number): void;
  /** Links the segment to a cause. Of any number of calls the first and the last are kept: a chunk of 600 tokens gets two links. */
  link(carrier: TraceCarrier): void;
  /** What the hop does now, of several things one after the other (a node of a graph): attributes of the segment, and an event of the span. */
  step(attributes: HopAttributes): void;
  /** Runs `fn` with this hop as the active span, so that log lines have its trace id. */
  run<T>(fn: () => T): T;
  /** Ends the segment and starts a linked one, e.g. for `reconnect` or `input_required`. Happens by itself after SEGMENT_MS_MAX. */
  nextSegment(reason: string): void;
  end(): void;
  /** Ends the hop with status ERROR. `reason` is a word of a closed list; a sentence becomes `other`. A client that leaves is no failure. */
  fail(reason: string): void;
}

/** Starts a hop. Without an exporter this is one call of a no-op tracer, and the parent's context passes through unchanged. */
export function startHop(name: SpanName, options: HopOptions): Hop {
  const parent = options.parent === undefined ? context.active() : contextFrom(options.parent);
  const links = (options.links ?? []).slice(0, HOP_LINKS_MAX).flatMap(carrier => linkFrom(carrier) ?? []);
  const span = startSpan(name, options.kind, parent, { ...options.attributes, [ATTR.segment]: 1 }, links);
  return span.isRecording() ? new RecordingHop(name, options, parent, span) : new PassingHop(span, parent);
}

function startSpan(name: SpanName, kind: HopOptions['kind'], parent: Context, attributes: HopAttributes, links: Link[]): Span {
  // `undefined` values are part of HopAttributes so that callers need no conditions; the SDK ignores them.
  const known = attributes as Attributes;
  return trace.getTracer(SCOPE).startSpan(name, { kind: KINDS[kind], attributes: known, links }, parent);
}

/** Not sampled, or no SDK. */
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
  /** Of every segment: the caller's span, or the first segment when this hop is the root, so that the trace id stays. */
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
