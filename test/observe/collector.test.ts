import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { A2A_METHOD, ATTR, SPAN, startHop, startTelemetry } from '@hopline/telemetry';
import { parse } from 'yaml';
import { PORTS, prepareStack } from '../../infra/observe/stack.ts';
import { JAEGER, JAEGER_ABSENT, Jaeger } from '../support/telemetry/jaeger.ts';

const COLLECTOR = new URL('../../infra/observe/config/collector.yaml', import.meta.url);
/** Longer than the decision wait of the collector under test, even on a loaded machine. */
const SAMPLED_MS_MAX = 60_000;

type Policy = { name: string; string_attribute?: { key: string; values: string[] } };
type Collector = { processors: { tail_sampling: { policies: Policy[] } } };

test('the sampling rules of the collector name only attributes and methods that the services export', () => {
  const { processors } = parse(readFileSync(COLLECTOR, 'utf8')) as Collector;
  const named = processors.tail_sampling.policies.flatMap(({ string_attribute }) => string_attribute ?? []);
  assert.ok(named.length > 3);
  const methods: string[] = Object.values(A2A_METHOD);
  for (const { key, values } of named) {
    assert.ok((Object.values(ATTR) as string[]).includes(key), key);
    if (key === ATTR.a2aMethod) for (const value of values) assert.ok(methods.includes(value), value);
  }
});

test('Jaeger accepts the configuration that npm run observe writes', { skip: JAEGER_ABSENT }, t => {
  const state = mkdtempSync(join(tmpdir(), 'hopline-observe-'));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  const inner = { otlpGrpc: 4317, jaegerGrpc: 16685, spanMetrics: 8889 };
  const [program] = prepareStack({ jaeger: JAEGER }, { state, natsMetrics: '127.0.0.1:1', ports: PORTS, inner });
  const { status, stderr } = spawnSync(JAEGER, ['validate', ...program!.command.slice(1)], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

/** Spans for which the collector must keep the trace, and the reason for each. */
const KEPT: Record<string, { name: string; attributes?: Record<string, string>; isError?: boolean; ms?: number }> = {
  'an error': { name: 'invoke_agent a', isError: true },
  'a slow turn': { name: 'process raw', ms: 6_000 },
  'a failed task': { name: 'deliver_events', attributes: { [ATTR.a2aState]: 'failed' } },
  'a client that left': { name: 'deliver_events', attributes: { [ATTR.outcome]: 'client_gone' } },
  'a send': { name: A2A_METHOD.sendMessage, attributes: { [ATTR.a2aMethod]: A2A_METHOD.sendMessage } },
  'a takeover': { name: 'process raw', attributes: { [ATTR.cause]: 'takeover' } },
  'a second attempt': { name: 'receive work', attributes: { [ATTR.cause]: 'redelivery' } },
};
const ORDINARY = 200;

test('the collector keeps traces that operators look for, even if they end after the request, and a sample of the rest', {
  skip: JAEGER_ABSENT,
  timeout: 180_000,
}, async () => {
  await using jaeger = await Jaeger.start({ isSampling: true });
  const traces = new Map(Object.keys(KEPT).map(kind => [kind, traceId()]));
  const ordinary = Array.from({ length: ORDINARY }, traceId);
  const request = (id: string) => span(id, { name: A2A_METHOD.sendStreamingMessage });
  await send(jaeger, [...traces.values(), ...ordinary].map(request));
  await send(
    jaeger,
    Object.entries(KEPT).map(([kind, one]) => span(traces.get(kind)!, one)),
  );
  const shown = () => new Set(jaeger.spans.map(({ traceId: id }) => id));
  await jaeger.until(
    'the kept traces',
    () => ([...traces.values()].every(id => shown().has(id)) ? true : undefined),
    SAMPLED_MS_MAX,
  );
  for (const [kind, id] of traces) assert.equal(jaeger.ofTrace(id).length, 2, kind);
  const rest = await jaeger.until(
    'a part of the rest',
    () => {
      const found = ordinary.filter(id => shown().has(id));
      return found.length > 0 ? found : undefined;
    },
    SAMPLED_MS_MAX,
  );
  // About a tenth of 200 are kept. Chance exceeds these limits in less than one of a million runs.
  assert.ok(rest.length < ORDINARY / 2, `${rest.length} of ${ORDINARY}`);
});

/** Turns of each kind. If the collector kept only a tenth, chance would keep all of them once in 10^20 runs. */
const TURNS = 20;
/** Longer than the decision wait of collector.yaml. */
const LONG_MS = 40_000;

test('the collector keeps turns that are slow or fail after its decision, and a sample of the quick ones', {
  skip: JAEGER_ABSENT,
  timeout: 300_000,
}, async () => {
  await using jaeger = await Jaeger.start({ isSampling: true, waits: true });
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: jaeger.endpoint };
  const telemetry = await startTelemetry({ service: 'relay', instance: 'relay-1', version: '0', env });
  const startTurns = (kind: string, count = TURNS) =>
    Array.from({ length: count }, (_, index) => {
      const id = traceId();
      const parent = { traceparent: `00-${id}-${'b'.repeat(16)}-01` };
      return {
        id,
        hop: startHop(SPAN.processInput, { kind: 'consumer', parent, attributes: { [ATTR.a2aTask]: `${kind}-${index}` } }),
      };
    });
  const slow = startTurns('slow');
  const failing = startTurns('failing');
  const quick = startTurns('quick', ORDINARY);
  try {
    for (const { hop } of quick) hop.end();
    await sleep(LONG_MS);
    for (const { hop } of slow) hop.end();
    for (const { hop } of failing) hop.fail('http_500');
  } finally {
    await telemetry.shutdown();
  }
  // The last spans of a trace arrive after its decision.
  const spansOf = ({ id }: { id: string }) => jaeger.ofTrace(id).length;
  const isWhole = () => ([...slow, ...failing].every(turn => spansOf(turn) === 2) ? true : undefined);
  await jaeger.until('the long turns', isWhole, SAMPLED_MS_MAX);
  for (const { id } of failing) assert.ok(jaeger.ofTrace(id).some(({ isError }) => isError));
  const kept = quick.filter(turn => spansOf(turn) > 0).length;
  assert.ok(kept > 0 && kept < ORDINARY / 2, `${kept} of ${ORDINARY}`);
});

const traceId = () => randomBytes(16).toString('hex');

function span(id: string, { name, attributes = {}, isError = false, ms = 5 }: (typeof KEPT)[string]) {
  const startMs = Date.now() - ms;
  return {
    traceId: id,
    spanId: randomBytes(8).toString('hex'),
    name,
    kind: 1,
    startTimeUnixNano: `${startMs}000000`,
    endTimeUnixNano: `${startMs + ms}000000`,
    attributes: Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: value } })),
    ...(isError && { status: { code: 2 } }),
  };
}

async function send(jaeger: Jaeger, spans: object[]): Promise<void> {
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'hopline-relay' } }] };
  const body = JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans }] }] });
  const response = await fetch(`${jaeger.endpoint}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  assert.equal(response.status, 200, await response.text());
}
