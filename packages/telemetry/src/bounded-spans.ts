import type { ReadableSpan, Span, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { A2A_METHOD, SPAN } from './names.ts';

/** Number of ended spans that wait for the collector, about 2 KB each. Further ones are lost. */
export const SPAN_QUEUE_MAX = 2_048;
/**
 * Delay of an export, unless OTEL_BSP_SCHEDULE_DELAY is set. A killed process loses the spans of this time. The SDK's
 * default of 5 s would lose the very spans that are exported early in order to survive. A request to the collector costs an idle process about
 * 1.5 ms of CPU however few spans it has: compared with 1 s, a delay of 500 ms used 1 % more of a cluster's CPU at 20 tasks a second, and 200 ms used 2 %
 * more. ADR 53.
 */
export const SPAN_DELAY_MS = 1_000;

/**
 * Spans that are exported at once, together with those that wait, because the spans of other processes are below them. Otherwise an ingress
 * or a relay that dies with the first text would leave those without a parent, and an agent would leave no trace of its attempt. A turn has
 * at most two of them in a process, never one per chunk.
 */
const LEAVE_AT_ONCE: ReadonlySet<string> = new Set([
  A2A_METHOD.sendMessage,
  A2A_METHOD.sendStreamingMessage,
  SPAN.receiveInput,
  SPAN.receiveWork,
]);
/** Minimum time between two exports for such spans, so that a busy process makes at most ten requests a second for them. */
export const AT_ONCE_MS_MIN = 100;

export type LostSpans = { reason: 'queue_full' | 'export_failed'; count: number; error?: unknown };

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

/** Counts the spans between the SDK's batch processor and its exporter, to determine how many are lost. */
export class BoundedSpans {
  readonly #queueMax: number;
  readonly #onLost: (lost: LostSpans) => void;
  #waiting = 0;
  #lost = 0;
  /** Whether an export for immediate spans is in progress, or was until a moment ago. */
  #leaving: 'no' | 'yes' | 'once more' = 'no';

  constructor(onLost: (lost: LostSpans) => void, queueMax = SPAN_QUEUE_MAX) {
    this.#onLost = onLost;
    this.#queueMax = queueMax;
  }

  /** All spans lost so far. */
  get lost(): number {
    return this.#lost;
  }

  /** Spans that wait for an export. */
  get waiting(): number {
    return this.#waiting;
  }

  processor(batch: SpanProcessor): SpanProcessor {
    return {
      onStart: (span: Span, parent) => batch.onStart(span, parent),
      onEnd: (span: ReadableSpan) => {
        if ((span.spanContext().traceFlags & 1) === 0) return;
        if (this.#waiting >= this.#queueMax) this.#lose({ reason: 'queue_full', count: 1 });
        else {
          this.#waiting += 1;
          batch.onEnd(span);
          if (LEAVE_AT_ONCE.has(span.name)) void this.#leave(batch);
        }
      },
      forceFlush: () => batch.forceFlush(),
      shutdown: () => batch.shutdown(),
    };
  }

  /** Spans in a request to the collector still count as waiting, so one limit covers the queue and the requests. */
  exporter(inner: SpanExporter): SpanExporter {
    return {
      export: (spans, done) =>
        inner.export(spans, (result: Result) => {
          this.#waiting -= spans.length;
          if (result.code !== 0) this.#lose({ reason: 'export_failed', count: spans.length, error: result.error });
          done(result);
        }),
      forceFlush: async () => inner.forceFlush?.(),
      shutdown: () => inner.shutdown(),
    };
  }

  /** One export at a time: a collector that hangs gets no further requests. */
  async #leave(batch: SpanProcessor): Promise<void> {
    if (this.#leaving !== 'no') {
      this.#leaving = 'once more';
      return;
    }
    do {
      this.#leaving = 'yes';
      // The exporter counts failed spans.
      await batch.forceFlush().catch(() => {});
      await new Promise(resolve => setTimeout(resolve, AT_ONCE_MS_MIN).unref());
    } while (this.#isAskedAgain());
    this.#leaving = 'no';
  }

  #isAskedAgain(): boolean {
    return this.#leaving === 'once more';
  }

  #lose(lost: LostSpans): void {
    this.#lost += lost.count;
    this.#onLost(lost);
  }
}
