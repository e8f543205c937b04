import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { closedWord } from './closed-word.ts';
import { ATTR, type AttributeKey, COUNT_NAMES, type CountKey, EVENT_STEP, SCOPE, type SpanName } from './names.ts';
import { carrierOf, contextFrom, spanContextFrom, type TraceCarrier } from './propagation.ts';
import { withSpanId } from './span-ids.ts';

/**
 * The first segment of a long hop ends after this time, and a linked one begins. Tail sampling decides 30 s after the first span of a
 * trace, so even a slow hop must have ended a span by then. ADR 97.
 */
export const SEGMENT_MS_FIRST = 10_000;
/** Longest time of every later segment, so that a long task is visible while it runs. */
export const SEGMENT_MS_MAX = 60_000;
/** Maximum number of links at the start of a hop; further ones are dropped. Measured: 32 links cost 24 µs per span, no links cost 4 µs. */
export const HOP_LINKS_MAX = 8;
/** Steps of one segment that become span events; further ones only change the attributes. */
export const HOP_STEPS_MAX = 64;

/** Marks an absent amount, because amounts are never negative. */
const NO_COUNT = -1;

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;
type Kind = keyof typeof KINDS;

export type HopAttributes = { readonly [K in AttributeKey]?: string | number | boolean | readonly string[] | undefined };

export type HopOptions = {
  readonly kind: Kind;
  /** Trace context of the message or request that caused this hop. Absent: the active span is the parent. */
  readonly parent?: TraceCarrier | undefined;
  /** Other causes, at most HOP_LINKS_MAX of them. A link to the parent is omitted. */
  readonly links?: readonly TraceCarrier[];
  readonly attributes?: HopAttributes;
  /** The message that this hop receives. It has its own short span, which is exported at once. */
  readonly receive?: Receive;
};

/**
 * The span of a message on its way from the queue to the process that takes it. It ends before the hop begins, so it is exported even if
 * the process crashes. It is the parent of the hop and of everything that the hop causes, so that a crash leaves no span without its
 * parent.
 */
export type Receive = {
  readonly name: SpanName;
  /** Epoch milliseconds at which the message was queued, and at which this process took it; absent: now. */
  readonly queuedAt?: number | undefined;
  readonly takenAt?: number;
  /** Id of the span, for a link from a later delivery. */
  readonly spanId?: string;
  readonly attributes?: HopAttributes;
};

/** The work of one service for one task: one span per segment, never one per token. */
export interface Hop {
  /**
   * Trace context for the messages and requests of this hop: the span that was exported when the hop began, otherwise the current
   * segment. Empty without a trace.
   */
  carrier(): TraceCarrier;
  /** Trace context of the current segment, for links: it may be lost with the process. Empty for a hop that is not recorded. */
  segmentCarrier(): TraceCarrier;
  /** Attributes of this and every later segment. */
  set(attributes: HopAttributes): void;
  /** Adds `n` >= 0 to a counter. The counter is set on the span when the segment ends, and starts again at 0 in the next segment. */
  count(key: CountKey, n?: number): void;
  /** Keeps the largest `value` (>= 0) of the segment. */
  max(key: CountKey, value: number): void;
  /**
   * Calls `report` before the numbers of a segment are set, for callers that count tokens themselves, because calling the hop for each
   * token costs 0.2 µs.
   */
  beforeSegmentEnd(report: () => void): void;
  /** Links the segment to a cause. Only the first and the last call count: a chunk of 600 tokens has two links. */
  link(carrier: TraceCarrier): void;
  /** Links the segment to a client's request. Such links are rare, and later links do not replace them. Limited by the links of a span. */
  linkRequest(carrier: TraceCarrier): void;
  /** Starts the next of several steps (a node of a graph): sets attributes of the segment and adds a span event. */
  step(attributes: HopAttributes): void;
  /** Runs `fn` with this hop as the active span, so that its log lines have the trace id. */
  run<T>(fn: () => T): T;
  /**
   * Ends the segment and starts a linked one, e.g. for `reconnect`. Called automatically after SEGMENT_MS_FIRST, then every SEGMENT_MS_MAX.
   */
  nextSegment(reason: string): void;
  /**
   * Ends the first span, so that it is exported while the hop continues. Later segments, of this name and kind, are its children, and
   * `carrier` stays the same.
   */
  taken(segments: { name: SpanName; kind: Kind }): void;
  end(): void;
  /**
   * Ends the hop with status ERROR. `reason` is a word of a closed list; a sentence becomes `other`. Not used when a client disconnects.
   */
  fail(reason: string): void;
}

/** Starts a hop. Without an exporter this is a single call of a no-op tracer, and the parent's context is passed on. */
export function startHop(name: SpanName, options: HopOptions): Hop {
  const { kind, receive, attributes, links = [] } = options;
  const parent = options.parent === undefined ? context.active() : contextFrom(options.parent);
  const causes = links.slice(0, HOP_LINKS_MAX);
  if (receive === undefined) {
    const span = startSpan(name, { kind, parent, attributes: { ...attributes, [ATTR.segment]: 1 }, causes });
    return span.isRecording() ? new RecordingHop(name, options, parent, span) : new PassingHop(span, parent);
  }
  const { queuedAt, takenAt = Date.now(), spanId } = receive;
  const startTime = Math.min(queuedAt ?? takenAt, takenAt);
  const received = withSpanId(spanId, () =>
    startSpan(receive.name, { kind: 'client', parent, attributes: { ...attributes, ...receive.attributes }, causes, startTime }),
  );
  received.end(takenAt);
  const taken = trace.setSpan(parent, received);
  const span = startSpan(name, { kind, parent: taken, attributes: { ...attributes, [ATTR.segment]: 1 }, startTime: takenAt });
  return span.isRecording() ? new RecordingHop(name, options, taken, span, received.spanContext()) : new PassingHop(span, taken);
}

type StartedSpan = {
  kind: Kind;
  parent: Context;
  attributes: HopAttributes;
  /** Spans that caused this one; they become links after `links`. */
  causes?: readonly TraceCarrier[];
  links?: Link[];
  startTime?: number;
};

function startSpan(name: SpanName, { kind, parent, attributes, causes = [], links = [], ...start }: StartedSpan): Span {
  const parentSpan = trace.getSpanContext(parent);
  for (const cause of causes) {
    const found = linkTo(cause, parentSpan, links);
    if (found !== undefined) links.push(found);
  }
  // The SDK ignores `undefined` values. HopAttributes allows them, so that callers need no conditions.
  const options = { kind: KINDS[kind], attributes: attributes as Attributes, links, ...start };
  return trace.getTracer(SCOPE).startSpan(name, options, parent);
}

/** Skips a link to the parent, or a repeated one: viewers draw both as a second edge. */
function linkTo(carrier: TraceCarrier, parent: SpanContext | undefined, others: readonly Link[] = []): Link | undefined {
  const found = spanContextFrom(carrier);
  if (found === undefined || found.spanId === parent?.spanId) return undefined;
  return others.some(({ context: other }) => other.spanId === found.spanId) ? undefined : { context: found };
}

/** A hop that is not sampled, or has no SDK. */
class PassingHop implements Hop {
  readonly #span: Span;
  readonly #parent: Context;
  #carrier: TraceCarrier | undefined;

  constructor(span: Span, parent: Context) {
    this.#span = span;
    this.#parent = parent;
  }

  carrier(): TraceCarrier {
    this.#carrier ??= carrierOf(this.#span.spanContext());
    return this.#carrier;
  }

  segmentCarrier(): TraceCarrier {
    return {};
  }

  // The context is created here instead of being kept, because it takes half a KiB, and a stream keeps its hop for as long as it is open.
  run<T>(fn: () => T): T {
    return context.with(trace.setSpan(this.#parent, this.#span), fn);
  }

  set(): void {}
  count(): void {}
  max(): void {}
  beforeSegmentEnd(): void {}
  link(): void {}
  linkRequest(): void {}
  step(): void {}
  nextSegment(): void {}
  taken(): void {}
  end(): void {}
  fail(): void {}
}

class RecordingHop implements Hop {
  #name: SpanName;
  #kind: Kind;
  /** Parent of every segment: the span that was exported when the hop began, or the caller's. */
  #parent: Context;
  /** The span that was exported when the hop began, if any. */
  #taken: SpanContext | undefined;
  /** Attributes that the hop had when its segment began, or that were set since. The span gets them when it ends, not with each chunk. */
  #attributes: HopAttributes;
  #changed: Attributes = {};
  #span: Span;
  #segment = 1;
  /** Context of the current segment, or of the exported span. */
  #carrier: TraceCarrier | undefined;
  /**
   * Indexed by CountKey; NO_COUNT while the segment has none. A plain array, because a typed array of this size would touch another cache
   * line on each call.
   */
  readonly #counts: number[] = new Array(COUNT_NAMES.length).fill(NO_COUNT);
  #report: (() => void) | undefined;
  #steps = 0;
  #firstLink: string | undefined;
  #lastLink: TraceCarrier | undefined;
  /** True once a segment has ended because of its age. */
  #isLong = false;
  #timer: NodeJS.Timeout;
  #ended = false;

  constructor(name: SpanName, options: HopOptions, parent: Context, span: Span, taken?: SpanContext) {
    this.#name = name;
    this.#kind = options.kind;
    this.#attributes = options.attributes ?? {};
    this.#span = span;
    this.#taken = taken;
    // Segments of a root hop are children of its first one, so that the trace id stays the same.
    this.#parent = trace.getSpanContext(parent) === undefined ? trace.setSpanContext(parent, span.spanContext()) : parent;
    this.#timer = this.#startTimer();
  }

  carrier(): TraceCarrier {
    this.#carrier ??= carrierOf(this.#taken ?? this.#span.spanContext());
    return this.#carrier;
  }

  segmentCarrier(): TraceCarrier {
    return carrierOf(this.#span.spanContext());
  }

  set(attributes: HopAttributes): void {
    if (this.#ended) return;
    for (const name in attributes) {
      const value = attributes[name as AttributeKey];
      if (value !== undefined) this.#changed[name] = value as Attributes[string];
    }
  }

  step(attributes: HopAttributes): void {
    this.set(attributes);
    if (this.#ended || this.#steps >= HOP_STEPS_MAX) return;
    this.#steps += 1;
    this.#span.addEvent(EVENT_STEP, attributes as Attributes);
  }

  count(key: CountKey, n = 1): void {
    const before = this.#counts[key]!;
    this.#counts[key] = before === NO_COUNT ? n : before + n;
  }

  max(key: CountKey, value: number): void {
    if (value > this.#counts[key]!) this.#counts[key] = value;
  }

  beforeSegmentEnd(report: () => void): void {
    this.#report = report;
  }

  link(carrier: TraceCarrier): void {
    if (this.#firstLink !== undefined) {
      this.#lastLink = carrier;
      return;
    }
    const link = this.#linkTo(carrier);
    if (link === undefined) return;
    this.#firstLink = carrier.traceparent;
    this.#span.addLink(link);
  }

  linkRequest(carrier: TraceCarrier): void {
    const link = this.#linkTo(carrier);
    if (link !== undefined) this.#span.addLink(link);
  }

  run<T>(fn: () => T): T {
    // Spans that `fn` begins get a parent that was already exported, which survives a crash of the process.
    return context.with(this.#taken === undefined ? trace.setSpan(this.#parent, this.#span) : this.#parent, fn);
  }

  nextSegment(reason: string): void {
    if (this.#ended) return;
    const before = this.#span.spanContext();
    this.#endSegment({ [ATTR.segmentReason]: closedWord(reason) });
    const isParent = trace.getSpanContext(this.#parent)?.spanId === before.spanId;
    this.#startSegment(isParent ? [] : [{ context: before }]);
  }

  taken(segments: { name: SpanName; kind: Kind }): void {
    if (this.#ended || this.#taken !== undefined) return;
    this.#taken = this.#span.spanContext();
    this.#endSegment({});
    this.#parent = trace.setSpanContext(this.#parent, this.#taken);
    this.#name = segments.name;
    this.#kind = segments.kind;
    this.#startSegment([]);
  }

  end(): void {
    if (this.#ended) return;
    this.#endSegment({});
    this.#ended = true;
  }

  fail(reason: string): void {
    if (this.#ended) return;
    const word = closedWord(reason);
    this.#span.setStatus({ code: SpanStatusCode.ERROR, message: word });
    this.#endSegment({ [ATTR.errorType]: word });
    this.#ended = true;
  }

  #linkTo(carrier: TraceCarrier): Link | undefined {
    return linkTo(carrier, trace.getSpanContext(this.#parent));
  }

  #startTimer(): NodeJS.Timeout {
    const age = () => {
      this.#isLong = true;
      this.nextSegment('age');
    };
    return setTimeout(age, this.#isLong ? SEGMENT_MS_MAX : SEGMENT_MS_FIRST).unref();
  }

  #startSegment(links: Link[]): void {
    this.#segment += 1;
    const attributes = { ...this.#attributes, [ATTR.segment]: this.#segment };
    this.#span = startSpan(this.#name, { kind: this.#kind, parent: this.#parent, attributes, links });
    this.#carrier = undefined;
    this.#timer = this.#startTimer();
  }

  #endSegment(attributes: Attributes): void {
    clearTimeout(this.#timer);
    this.#report?.();
    // Compared here instead of in `link`: a header's value is a slice of all headers, and comparing two of them took 0.3 µs per input.
    const last = this.#lastLink?.traceparent === this.#firstLink ? undefined : this.#lastLink;
    const link = last === undefined ? undefined : this.#linkTo(last);
    if (link !== undefined) this.#span.addLink(link);
    const counts: Attributes = {};
    for (const [key, n] of this.#counts.entries()) if (n !== NO_COUNT) counts[COUNT_NAMES[key]!] = n;
    this.#span.setAttributes({ ...this.#changed, ...counts, ...attributes });
    this.#span.end();
    this.#attributes = { ...this.#attributes, ...this.#changed };
    this.#changed = {};
    this.#counts.fill(NO_COUNT);
    this.#steps = 0;
    this.#firstLink = undefined;
    this.#lastLink = undefined;
  }
}
