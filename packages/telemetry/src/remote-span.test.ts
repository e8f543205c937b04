import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { readableSpan } from './remote-span.ts';

test('a span of another process has its ids, its times and the resource of this process', () => {
  const resource = resourceFromAttributes({ 'service.name': 'hopline-sub-agent' });
  const span = {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    name: 'look up',
    kind: SpanKind.INTERNAL,
    startTime: [1, 999_999_999] as [number, number],
    endTime: [2, 1] as [number, number],
    attributes: { rows: 3 },
    status: { code: SpanStatusCode.UNSET },
    scope: 'hopline.agent',
  };
  const root = readableSpan(span, resource);
  assert.deepEqual(root.spanContext(), { traceId: span.traceId, spanId: span.spanId, traceFlags: 1 });
  assert.deepEqual(root.duration, [0, 2]);
  assert.equal(root.parentSpanContext, undefined);
  assert.equal(root.resource, resource);
  assert.deepEqual(root.links, []);
  const child = readableSpan({ ...span, parentSpanId: '00f067aa0ba902b7', linkIds: ['aaf067aa0ba902b7'] }, resource);
  assert.equal(child.parentSpanContext?.spanId, '00f067aa0ba902b7');
  assert.deepEqual(child.links, [{ context: { traceId: span.traceId, spanId: 'aaf067aa0ba902b7', traceFlags: 1 } }]);
});
