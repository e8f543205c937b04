import assert from 'node:assert/strict';
import test, { mock } from 'node:test';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { AT_ONCE_MS_MIN, BoundedSpans, type LostSpans } from './bounded-spans.ts';
import { A2A_METHOD, SPAN } from './names.ts';

const SENDS = [A2A_METHOD.sendMessage, A2A_METHOD.sendStreamingMessage];

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

test('the spans of a failed export are counted as lost, with its error; a successful export makes room', () => {
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

test('the spans that other processes continue are exported at once, one request at a time, and other spans wait', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const spans = new BoundedSpans(() => {});
    const requests: (() => void)[] = [];
    const forceFlush = () => new Promise<void>(resolve => requests.push(resolve));
    const processor = spans.processor({ onStart() {}, onEnd() {}, forceFlush } as unknown as SpanProcessor);
    const end = (name: string) => processor.onEnd({ ...span(), name } as ReadableSpan);
    const passed = async (ms: number) => {
      await new Promise(resolve => setImmediate(resolve));
      mock.timers.tick(ms);
      await new Promise(resolve => setImmediate(resolve));
    };
    for (const name of [SPAN.processInput, SPAN.processWork, SPAN.deliverEvents, A2A_METHOD.subscribeToTask]) end(name);
    assert.equal(requests.length, 0);
    end(SPAN.receiveWork);
    assert.equal(requests.length, 1);
    for (let n = 0; n < 50; n++) end(SPAN.receiveWork);
    await passed(AT_ONCE_MS_MIN);
    assert.equal(requests.length, 1, 'the first request is still on its way');
    requests[0]!();
    await passed(AT_ONCE_MS_MIN - 1);
    assert.equal(requests.length, 1);
    await passed(1);
    assert.equal(requests.length, 2, 'one for all fifty');
    requests[1]!();
    await passed(AT_ONCE_MS_MIN);
    assert.equal(requests.length, 2);
    for (const [index, name] of [SPAN.receiveWork, SPAN.receiveInput, ...SENDS].entries()) {
      end(name);
      assert.equal(requests.length, index + 3, name);
      requests.at(-1)!();
      await passed(AT_ONCE_MS_MIN);
    }
  } finally {
    mock.timers.reset();
  }
});
