import assert from 'node:assert/strict';
import test from 'node:test';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { BoundedSpans, type LostSpans } from './bounded-spans.ts';

type Done = Parameters<SpanExporter['export']>[1];

const span = (traceFlags = 1) => ({ spanContext: () => ({ traceId: 'a', spanId: 'b', traceFlags }) }) as unknown as ReadableSpan;

function rig(queueMax: number) {
  const losses: LostSpans[] = [];
  const queued: ReadableSpan[] = [];
  const pending: Done[] = [];
  const spans = new BoundedSpans(lost => losses.push(lost), queueMax);
  const batch = { onStart() {}, onEnd: (one: ReadableSpan) => void queued.push(one) } as unknown as SpanProcessor;
  const collector = { export: (_spans: ReadableSpan[], done: Done) => void pending.push(done) } as unknown as SpanExporter;
  return { losses, queued, pending, spans, processor: spans.processor(batch), exporter: spans.exporter(collector) };
}

test('spans above the bound are lost and counted, while a collector hangs', () => {
  const { losses, queued, spans, processor } = rig(3);
  for (let n = 0; n < 5; n++) processor.onEnd(span());
  assert.deepEqual([queued.length, spans.waiting, spans.lost], [3, 3, 2]);
  assert.deepEqual(losses, Array(2).fill({ reason: 'queue_full', count: 1 }));
  processor.onEnd(span(0));
  assert.equal(spans.lost, 2, 'a span that is not sampled is not lost');
});

test('spans of a failed request are lost with its error, those of a successful one make room', () => {
  const { losses, pending, spans, processor, exporter } = rig(2);
  const error = new Error('refused');
  for (const result of [{ code: 0 }, { code: 1, error }]) {
    processor.onEnd(span());
    processor.onEnd(span());
    const results: unknown[] = [];
    exporter.export([span(), span()], done => results.push(done));
    assert.equal(spans.waiting, 2, 'a request in flight is within the bound');
    pending.pop()!(result);
    assert.deepEqual([spans.waiting, results], [0, [result]]);
  }
  assert.deepEqual(losses, [{ reason: 'export_failed', count: 2, error }]);
});
