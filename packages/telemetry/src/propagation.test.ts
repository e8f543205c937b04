import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { context, ROOT_CONTEXT } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import fc from 'fast-check';
import { currentTrace, withTrace } from './active-trace.test-kit.ts';
import { carrierOf, contextFrom, fromCaller, spanContextFrom, TRACESTATE_CHARS_MAX, toCallee } from './propagation.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SPAN_ID = 'b7ad6b7169203331';
const PARENT = `00-${TRACE_ID}-${SPAN_ID}-01`;

beforeEach(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
afterEach(() => context.disable());

test('a carrier survives a round trip without an SDK', async () => {
  const carrier = { traceparent: PARENT, tracestate: 'vendor=1,other=2' };
  const seen = await withTrace(carrier, async () => {
    await new Promise(resolve => setImmediate(resolve));
    return currentTrace();
  });
  assert.deepEqual(seen, carrier);
  assert.deepEqual(currentTrace(), {});
});

test('the sampled flag is kept; unknown flags are removed', () => {
  assert.equal(carrierOf(spanContextFrom({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-00` })).traceparent?.slice(-2), '00');
  assert.equal(carrierOf(spanContextFrom({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-ff` })).traceparent?.slice(-2), '01');
});

test('a malformed traceparent counts as absent', () => {
  const malformed = [
    '',
    'x',
    `00-${TRACE_ID}-${SPAN_ID}`,
    `00-${TRACE_ID}-${SPAN_ID}-01-more`,
    `ff-${TRACE_ID}-${SPAN_ID}-01`,
    `00-${'0'.repeat(32)}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`,
    ` ${PARENT}`,
  ];
  for (const traceparent of malformed) {
    assert.equal(spanContextFrom({ traceparent }), undefined, traceparent);
    assert.equal(contextFrom({ traceparent }), ROOT_CONTEXT);
  }
  assert.equal(spanContextFrom({}), undefined);
  assert.deepEqual(carrierOf(undefined), {});
});

test('a later version of the header with more fields is accepted', () => {
  assert.equal(spanContextFrom({ traceparent: `01-${TRACE_ID}-${SPAN_ID}-01-more` })?.traceId, TRACE_ID);
});

test('a tracestate longer than the bound is dropped, the trace is kept', () => {
  const entry = (chars: number) => `v=${'x'.repeat(chars - 2)}`;
  const fits = `${entry(256)},${entry(TRACESTATE_CHARS_MAX - 257)}`;
  assert.equal(carrierOf(spanContextFrom({ traceparent: PARENT, tracestate: fits })).tracestate?.length, 256);
  assert.deepEqual(carrierOf(spanContextFrom({ traceparent: PARENT, tracestate: `${fits}x` })), { traceparent: PARENT });
});

test('an empty carrier inside a trace does not inherit that trace', () => {
  withTrace({ traceparent: PARENT }, () => {
    assert.deepEqual(
      withTrace({}, () => currentTrace()),
      {},
    );
  });
});

test('no input makes the parser throw', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (traceparent, tracestate) => void spanContextFrom({ traceparent, tracestate })),
  );
});

test('a request to a remote agent names the span of its turn, and the span of that request links to it', () => {
  const span = { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` };
  const sent = toCallee({ traceparent: PARENT, tracestate: 'vendor=1,hopline=0000000000000001' }, span);
  assert.deepEqual(sent, { traceparent: PARENT, tracestate: 'hopline=00f067aa0ba902b7,vendor=1' });
  assert.deepEqual(fromCaller(sent), {
    parent: { traceparent: PARENT, tracestate: 'vendor=1' },
    links: [{ ...span, tracestate: 'hopline=00f067aa0ba902b7,vendor=1' }],
  });
  assert.deepEqual(toCallee({ traceparent: PARENT }, {}), { traceparent: PARENT }, 'a turn that is not recorded');
  assert.deepEqual(toCallee({}, span), {}, 'no trace');
  const full = { traceparent: PARENT, tracestate: `v=${'x'.repeat(250)},w=${'x'.repeat(250)}` };
  assert.deepEqual(toCallee(full, span), full);
  for (const tracestate of ['', 'vendor=1', 'hopline=none'])
    assert.deepEqual(fromCaller({ traceparent: PARENT, tracestate }).links, [], tracestate);
  assert.deepEqual(fromCaller({}), { parent: {}, links: [] });
});
