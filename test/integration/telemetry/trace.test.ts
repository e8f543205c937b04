import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { until } from '../../kit/until.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { collect, type Frame, frames } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import type { ExportedSpan } from '../../support/telemetry/exported-spans.ts';
import { OtlpReceiver } from '../../support/telemetry/otlp-receiver.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SECRET = 'the-text-of-a-token';

const receiver = new OtlpReceiver();
let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  const endpoint = await receiver.start();
  remote = await startRemoteAgent({ dialect: '0.3', script: answer(Array.from({ length: 200 }, () => SECRET)) });
  cluster = await Cluster.start({
    agents: [{ name: 'argocd', adapter: 'a2a', url: remote.url }],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: '200' },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await receiver.stop();
});

const CLIENT_SPAN_ID = 'b7ad6b7169203331';

const services = (spans: ExportedSpan[]) => new Set(spans.map(span => span.service));

/** The spans of a trace of four services. Each process exports its own spans, so a span may arrive before its parent. */
function spansOf(traceId: string): Promise<ExportedSpan[]> {
  return until(() => {
    const spans = receiver.spans.filter(span => span.traceId === traceId);
    const ids = new Set([CLIENT_SPAN_ID, ...spans.map(({ spanId }) => spanId)]);
    return services(spans).size >= 4 && spans.every(({ parentId }) => ids.has(parentId ?? '')) && spans;
  }, `the spans of ${traceId}`);
}

test('one trace covers all hops, with one span per hop and none per token (promise 6) [S0-1]', { timeout: 120_000 }, async () => {
  const headers = { traceparent: `00-${TRACE_ID}-${CLIENT_SPAN_ID}-01` };
  await collect(cluster.url, { text: `repeat ${SECRET}`, headers });
  const spans = await spansOf(TRACE_ID);
  assert.deepEqual([...services(spans)].sort(), ['hopline-ingress', 'hopline-relay', 'hopline-sub-agent', 'hopline-supervisor']);
  assert.ok(spans.length <= 10, `${spans.length} spans for 200 tokens: ${spans.map(span => span.name)}`);
  const byId = new Map(spans.map(span => [span.spanId, span]));
  const parentOf = (service: string) => byId.get(spans.find(span => span.service === service)?.parentId ?? '')?.service;
  assert.equal(spans.find(span => span.service === 'hopline-ingress')?.parentId, CLIENT_SPAN_ID);
  assert.equal(parentOf('hopline-relay'), 'hopline-ingress');
  assert.equal(parentOf('hopline-supervisor'), 'hopline-relay');
  assert.equal(parentOf('hopline-sub-agent'), 'hopline-supervisor');
  assert.match(String(remote.requests[0]?.headers.traceparent), new RegExp(`^00-${TRACE_ID}-`));
});

test('spans, metrics and log lines contain no token text (invariant 7)', async () => {
  assert.ok(receiver.bodies.length > 0);
  for (const body of receiver.bodies) assert.ok(!body.includes(SECRET));
  for (const service of cluster.services) {
    assert.ok(!service.output.includes(SECRET), `${service.spec.instance} logged it`);
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    assert.match(metrics, /# TYPE/);
    assert.ok(!metrics.includes(SECRET));
  }
});

test('a client disconnect leaves no span in error [S2-35 S2-36]', { timeout: 120_000 }, async () => {
  const traceId = TRACE_ID.replace('0af', '0bf');
  const list: Frame[] = [];
  for await (const frame of frames(cluster.url, {
    text: 'again',
    headers: { traceparent: `00-${traceId}-${CLIENT_SPAN_ID}-01` },
  })) {
    list.push(frame);
    break;
  }
  const spans = await spansOf(traceId);
  assert.ok(services(spans).size >= 4);
  assert.ok(spans.every(span => !span.isError));
});
