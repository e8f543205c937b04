import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { bytesAllocated } from '../../../test/support/counted-work.ts';
import { currentTrace } from './active-trace.test-kit.ts';
import { HOP_LINKS_MAX, HOP_STEPS_MAX, SEGMENT_MS_FIRST, SEGMENT_MS_MAX, startHop } from './hop-span.ts';
import { ATTR, COUNT, invokeAgentSpan, SPAN } from './names.ts';
import { spanContextFrom } from './propagation.ts';
import { spanIds } from './span-ids.ts';
import { redeliveryCause, startWorkHop } from './work-hop.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const cause = (n: number) => ({ traceparent: `00-${TRACE_ID}-${n.toString(16).padStart(16, '0')}-01` });
const memory = new InMemorySpanExporter();

beforeEach(() => {
  memory.reset();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterEach(() => {
  context.disable();
  trace.disable();
});

function record(): void {
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: memory })] }));
}

function only() {
  const spans = memory.getFinishedSpans();
  assert.equal(spans.length, 1);
  return spans[0]!;
}

test('a caller that keeps its own counts is asked for them at the end of each segment, including the last', () => {
  record();
  const hop = startHop(SPAN.processInput, { kind: 'consumer', parent: cause(1) });
  let tokens = 2;
  hop.beforeSegmentEnd(() => {
    hop.count(COUNT.tokens, tokens);
    hop.set({ [ATTR.a2aState]: `after ${tokens}` });
    tokens += 1;
  });
  hop.nextSegment('reconnect');
  hop.end();
  hop.end();
  const found = memory.getFinishedSpans().map(({ attributes }) => [attributes['hopline.tokens'], attributes['a2a.task.state']]);
  assert.deepEqual(found, [
    [2, 'after 2'],
    [3, 'after 3'],
  ]);
});

test('a hop is one span with counters, not one per token [S2-30]', () => {
  record();
  const hop = startHop(SPAN.processInput, { kind: 'consumer', parent: cause(1), attributes: { [ATTR.a2aTask]: 't-1' } });
  for (let n = 0; n < 661; n++) hop.count(COUNT.tokens);
  hop.count(COUNT.bytesIn, 3200);
  hop.count(COUNT.chunks);
  hop.max(COUNT.gapMsMax, 5);
  hop.max(COUNT.gapMsMax, 17);
  hop.max(COUNT.gapMsMax, 9);
  hop.set({ [ATTR.a2aState]: 'completed' });
  hop.end();
  const span = only();
  assert.deepEqual(span.attributes, {
    'a2a.task.id': 't-1',
    'hopline.segment': 1,
    'a2a.task.state': 'completed',
    'hopline.tokens': 661,
    'hopline.bytes_in': 3200,
    'hopline.chunks': 1,
    'hopline.gap_ms_max': 17,
  });
  assert.equal(span.kind, SpanKind.CONSUMER);
  assert.equal(span.parentSpanContext?.spanId, spanContextFrom(cause(1))?.spanId);
  assert.equal(span.status.code, SpanStatusCode.UNSET);
});

test('the steps of a hop are bounded span events, and the last one sets the attributes [S1-31]', () => {
  record();
  const hop = startHop(invokeAgentSpan('graph'), { kind: 'client' });
  for (let n = 0; n <= HOP_STEPS_MAX; n++) hop.step({ [ATTR.graphNode]: `node-${n}` });
  hop.end();
  const { events, attributes } = only();
  assert.equal(events.length, HOP_STEPS_MAX);
  assert.deepEqual([events[0]?.name, events[0]?.attributes], ['hopline.step', { 'hopline.graph.node': 'node-0' }]);
  assert.equal(attributes['hopline.graph.node'], `node-${HOP_STEPS_MAX}`);
});

test('the carrier of a hop is the parent of the next hop, in the same trace', () => {
  record();
  const first = startHop(SPAN.receiveWork, { kind: 'client', parent: cause(1) });
  const second = startHop(SPAN.processWork, { kind: 'consumer', parent: first.carrier() });
  second.end();
  first.end();
  const [inner, outer] = memory.getFinishedSpans();
  assert.equal(inner?.parentSpanContext?.spanId, outer?.spanContext().spanId);
  assert.equal(inner?.spanContext().traceId, TRACE_ID);
});

test('without a parent the active span is the parent; with an empty carrier a new trace begins', () => {
  record();
  const outer = startHop(invokeAgentSpan('demo'), { kind: 'client', parent: cause(1) });
  const inner = outer.run(() => startHop(SPAN.receiveWork, { kind: 'client' }));
  assert.deepEqual(
    outer.run(() => currentTrace()),
    outer.carrier(),
  );
  const root = outer.run(() => startHop(SPAN.receiveWork, { kind: 'client', parent: {} }));
  for (const hop of [inner, root, outer]) hop.end();
  const [innerSpan, rootSpan, outerSpan] = memory.getFinishedSpans();
  assert.equal(innerSpan?.parentSpanContext?.spanId, outerSpan?.spanContext().spanId);
  assert.equal(rootSpan?.parentSpanContext, undefined);
  assert.notEqual(rootSpan?.spanContext().traceId, TRACE_ID);
});

test('a segment rolls over at SEGMENT_MS_FIRST: same trace, linked, counters restart, attributes stay', () => {
  record();
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const hop = startHop(SPAN.processInput, { kind: 'consumer', parent: {}, attributes: { [ATTR.a2aTask]: 't-1' } });
    hop.count(COUNT.tokens, 3);
    const before = hop.carrier();
    mock.timers.tick(SEGMENT_MS_FIRST - 1);
    assert.equal(memory.getFinishedSpans().length, 0);
    mock.timers.tick(1);
    assert.equal(memory.getFinishedSpans().length, 1);
    assert.notDeepEqual(hop.carrier(), before);
    hop.count(COUNT.tokens, 4);
    hop.end();
    mock.timers.tick(SEGMENT_MS_MAX * 2);
  } finally {
    mock.timers.reset();
  }
  const [first, second, ...more] = memory.getFinishedSpans();
  assert.equal(more.length, 0);
  assert.equal(first?.attributes[ATTR.segmentReason], 'age');
  assert.deepEqual([first?.attributes['hopline.tokens'], second?.attributes['hopline.tokens']], [3, 4]);
  assert.deepEqual([second?.attributes[ATTR.segment], second?.attributes[ATTR.a2aTask]], [2, 't-1']);
  assert.equal(second?.spanContext().traceId, first?.spanContext().traceId);
  assert.deepEqual([second?.parentSpanContext?.spanId, second?.links], [first?.spanContext().spanId, []]);
});

test('a long hop has one early segment, then one every SEGMENT_MS_MAX, even after its first span was ended early', () => {
  for (const isTaken of [false, true]) {
    memory.reset();
    record();
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const hop = startHop(SPAN.processInput, { kind: 'consumer', parent: {} });
      if (isTaken) hop.taken({ name: SPAN.deliverEvents, kind: 'internal' });
      const ended = () => memory.getFinishedSpans().length - Number(isTaken);
      mock.timers.tick(SEGMENT_MS_FIRST);
      assert.equal(ended(), 1);
      mock.timers.tick(SEGMENT_MS_MAX - 1);
      assert.equal(ended(), 1);
      mock.timers.tick(1);
      assert.equal(ended(), 2);
      for (let minute = 1; minute <= 10; minute += 1) mock.timers.tick(SEGMENT_MS_MAX);
      assert.equal(ended(), 12, 'a day has 1,441 segments');
      hop.end();
    } finally {
      mock.timers.reset();
    }
    trace.disable();
  }
});

test('every segment of a hop has the same parent', () => {
  record();
  const hop = startHop(SPAN.processInput, { kind: 'consumer', parent: cause(1) });
  hop.nextSegment('reconnect');
  hop.nextSegment('input_required');
  hop.end();
  const parents = memory.getFinishedSpans().map(span => span.parentSpanContext?.spanId);
  assert.deepEqual(parents, Array(3).fill(spanContextFrom(cause(1))?.spanId));
});

test('a hop keeps at most HOP_LINKS_MAX initial links, and only the first and last of later ones', () => {
  record();
  const many = Array.from({ length: HOP_LINKS_MAX + 1 }, (_, n) => cause(n + 1));
  startHop(SPAN.processInput, { kind: 'consumer', links: many }).end();
  assert.equal(memory.getFinishedSpans()[0]?.links.length, HOP_LINKS_MAX);
  memory.reset();
  const hop = startHop(SPAN.processInput, { kind: 'consumer', links: [{}] });
  hop.link({});
  for (let n = 1; n <= 600; n++) hop.link(cause(n));
  hop.end();
  const linked = only().links.map(link => Number.parseInt(link.context.spanId, 16));
  assert.deepEqual(linked, [1, 600]);
});

test('a link to a request is kept, whatever is linked after it', () => {
  record();
  const hop = startHop(SPAN.processInput, { kind: 'consumer', parent: cause(1) });
  hop.linkRequest(cause(1));
  for (let n = 2; n <= 9; n++) {
    hop.link(cause(n));
    if (n === 5) hop.linkRequest(cause(50));
  }
  hop.end();
  const linked = only().links.map(link => Number.parseInt(link.context.spanId, 16));
  assert.deepEqual(linked, [2, 50, 9]);
});

test('a counter that was never raised is absent, one raised by 0 is 0, and a maximum keeps the largest value', () => {
  record();
  const hop = startHop(SPAN.processInput, { kind: 'consumer' });
  hop.count(COUNT.rejected, 0);
  for (const ms of [3, 7, 5]) hop.max(COUNT.gapMsMax, ms);
  hop.end();
  assert.deepEqual(only().attributes, { [ATTR.segment]: 1, 'hopline.rejected': 0, 'hopline.gap_ms_max': 7 });
});

test('fail sets a closed word, never a sentence; end and fail happen once', () => {
  record();
  const hop = startHop(SPAN.processInput, { kind: 'consumer' });
  hop.fail('could not read "my secret"');
  hop.fail('again');
  hop.end();
  hop.nextSegment('late');
  hop.set({ [ATTR.outcome]: 'late' });
  const span = only();
  assert.deepEqual(span.status, { code: SpanStatusCode.ERROR, message: 'other' });
  assert.equal(span.attributes[ATTR.errorType], 'other');
  assert.equal(span.events.length, 0);
});

test('without an SDK the parent passes through unchanged, no timer runs, and counting allocates nothing', async () => {
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length;
  const before = timers();
  const hop = startHop(SPAN.processInput, { kind: 'consumer', parent: cause(7) });
  assert.deepEqual(hop.carrier(), cause(7));
  assert.deepEqual(
    hop.run(() => currentTrace()),
    cause(7),
  );
  assert.equal(timers(), before);
  assert.deepEqual(startHop(SPAN.processInput, { kind: 'consumer', parent: {} }).carrier(), {});
  const tokens = 1_000_000;
  const bytes = await bytesAllocated(() => {
    for (let n = 0; n < tokens; n++) hop.count(COUNT.tokens);
  });
  // The smallest object has 16 bytes; the figure is exact to a few MiB.
  assert.ok(bytes < 8 * tokens, `${bytes} bytes`);
});

test('a received message has its own span, exported before its work and the parent of everything after it [S0-1]', () => {
  record();
  const queuedAt = Date.now() - 5_000;
  const receive = { name: SPAN.receiveInput, queuedAt, attributes: { [ATTR.operationType]: 'receive' } };
  const hop = startHop(SPAN.processInput, { kind: 'consumer', parent: cause(1), links: [cause(1), cause(2)], receive });
  const [received, ...others] = memory.getFinishedSpans();
  assert.equal(others.length, 0, 'the work itself goes on');
  assert.equal(received?.name, SPAN.receiveInput);
  assert.equal(received.parentSpanContext?.spanId, spanContextFrom(cause(1))?.spanId);
  assert.equal(received.startTime[0] * 1000 + Math.round(received.startTime[1] / 1e6), queuedAt);
  assert.deepEqual(
    received.links.map(({ context: linked }) => linked.spanId),
    [spanContextFrom(cause(2))?.spanId],
    'a link to the parent is left out',
  );
  assert.equal(spanContextFrom(hop.carrier())?.spanId, received.spanContext().spanId);
  hop.link(hop.carrier());
  hop.nextSegment('age');
  hop.end();
  const segments = memory.getFinishedSpans().slice(1);
  assert.deepEqual(
    segments.map(span => [span.name, span.parentSpanContext?.spanId, span.attributes[ATTR.segment]]),
    [1, 2].map(n => [SPAN.processInput, received.spanContext().spanId, n]),
  );
  assert.deepEqual(segments[0]?.links, []);
  assert.equal(segments[1]?.links[0]?.context.spanId, segments[0]?.spanContext().spanId);
});

test('a request is exported when it is received; its stream is a span below it, and the context for messages stays', () => {
  record();
  const hop = startHop('send_streaming_message', { kind: 'server', parent: cause(1), attributes: { [ATTR.a2aTask]: 't-1' } });
  const before = hop.carrier();
  hop.taken({ name: SPAN.deliverEvents, kind: 'internal' });
  hop.taken({ name: SPAN.deliverEvents, kind: 'internal' });
  assert.equal(memory.getFinishedSpans().length, 1);
  assert.deepEqual(hop.carrier(), before);
  hop.set({ [ATTR.a2aState]: 'completed' });
  hop.end();
  const [request, stream, ...more] = memory.getFinishedSpans();
  assert.equal(more.length, 0);
  assert.deepEqual([request?.name, request?.kind], ['send_streaming_message', SpanKind.SERVER]);
  assert.deepEqual([stream?.name, stream?.kind], [SPAN.deliverEvents, SpanKind.INTERNAL]);
  assert.equal(stream?.parentSpanContext?.spanId, request?.spanContext().spanId);
  assert.deepEqual([stream?.attributes[ATTR.a2aTask], stream?.attributes[ATTR.a2aState]], ['t-1', 'completed']);
});

test('a later delivery of a work item links, with the cause, to the span of the previous delivery, which ran elsewhere', () => {
  trace.setGlobalTracerProvider(
    new TracerProvider({ idGenerator: spanIds, spanProcessors: [new SimpleSpanProcessor({ exporter: memory })] }),
  );
  const delivery = { taskId: 't-1', role: 'agent.demo', item: 7, requeues: 0, takenAt: Date.now(), trace: cause(1) };
  startWorkHop(invokeAgentSpan('demo'), 'client', { ...delivery, attempt: 1, queuedAt: Date.now() }, {}).end();
  startWorkHop(invokeAgentSpan('demo'), 'client', { ...delivery, attempt: 2 }, {}).end();
  const [first, second] = memory.getFinishedSpans().filter(({ name }) => name === SPAN.receiveWork);
  assert.deepEqual(first?.links, []);
  assert.deepEqual(
    second?.links.map(({ context: linked }) => linked.spanId),
    [first?.spanContext().spanId],
  );
  assert.deepEqual([first?.attributes[ATTR.cause], second?.attributes[ATTR.cause]], [undefined, 'redelivery']);
  assert.equal(second?.parentSpanContext?.spanId, first?.parentSpanContext?.spanId);
  assert.deepEqual(
    [
      [1, 0],
      [2, 1],
      [3, 1],
    ].map(([attempt, requeues]) => redeliveryCause({ attempt: attempt!, requeues: requeues! })),
    [undefined, 'requeue', 'redelivery'],
  );
});
