import { ATTRIBUTE_CHARS_MAX, SPAN_ATTRIBUTES_MAX } from '@hopline/telemetry';
import { type Attributes, context, createContextKey, trace } from '@opentelemetry/api';
import type { ReadableSpan, Span, SpanProcessor } from '@opentelemetry/sdk-trace';
import { type CodeSpan, SPAN_NAME_CHARS_MAX, SPANS_PER_FRAME_MAX } from './protocol.ts';

const TURN = createContextKey('the turn of a code host');

/** Sends the ended spans of a turn. */
type SendSpans = (id: number, spans: readonly CodeSpan[]) => void;

/** Runs `fn` so that spans which begin in it belong to a turn. */
export function inTurn<T>(id: number, fn: () => T): T {
  return context.with(context.active().setValue(TURN, id), fn);
}

/**
 * Collects the spans of the code for its sub-agent, which exports them because the code has no exporter, and no credentials for one. Spans
 * that end after their turn are lost.
 */
export class CodeSpans implements SpanProcessor {
  readonly #send: SendSpans;
  readonly #turns = new WeakMap<object, number>();
  readonly #ended = new Map<number, CodeSpan[]>();

  constructor(send: SendSpans) {
    this.#send = send;
  }

  onStart(span: Span, parent: ReturnType<typeof context.active>): void {
    const id = parent.getValue(TURN);
    if (typeof id === 'number') this.#turns.set(span, id);
  }

  onEnd(span: ReadableSpan): void {
    const id = this.#turns.get(span);
    if (id === undefined) return;
    const spans = this.#ended.get(id);
    if (spans === undefined) {
      this.#ended.set(id, [codeSpan(span)]);
      setImmediate(() => this.flush(id));
    } else {
      spans.push(codeSpan(span));
      if (spans.length === SPANS_PER_FRAME_MAX) this.flush(id);
    }
  }

  flush(id: number): void {
    const spans = this.#ended.get(id);
    this.#ended.delete(id);
    if (spans !== undefined) this.#send(id, spans);
  }

  async forceFlush(): Promise<void> {
    for (const id of this.#ended.keys()) this.flush(id);
  }

  shutdown(): Promise<void> {
    return this.forceFlush();
  }
}

/** Makes `spans` receive the spans of the process, unless the code has registered an SDK of its own. */
export async function collectSpans(spans: CodeSpans): Promise<void> {
  const { TracerProvider } = await import('@opentelemetry/sdk-trace');
  const spanLimits = { attributeValueLengthLimit: ATTRIBUTE_CHARS_MAX, attributeCountLimit: SPAN_ATTRIBUTES_MAX };
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [spans], spanLimits }));
}

function codeSpan(span: ReadableSpan): CodeSpan {
  const { name, kind, startTime, endTime, attributes, status, parentSpanContext, instrumentationScope } = span;
  const { code, message } = status;
  return {
    spanId: span.spanContext().spanId,
    ...(parentSpanContext !== undefined && { parentSpanId: parentSpanContext.spanId }),
    name: name.slice(0, SPAN_NAME_CHARS_MAX),
    kind,
    startTime,
    endTime,
    attributes: plain(attributes),
    status: { code, ...(message !== undefined && { message: message.slice(0, ATTRIBUTE_CHARS_MAX) }) },
    scope: instrumentationScope.name.slice(0, SPAN_NAME_CHARS_MAX),
  };
}

/** The attributes that a frame may have: texts, numbers and booleans. Lists become one text. */
function plain(attributes: Attributes): CodeSpan['attributes'] {
  const entries = Object.entries(attributes).map(([key, value]) => [
    key.slice(0, SPAN_NAME_CHARS_MAX),
    Array.isArray(value) ? value.join(', ').slice(0, ATTRIBUTE_CHARS_MAX) : value,
  ]);
  return Object.fromEntries(entries.filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value)));
}
