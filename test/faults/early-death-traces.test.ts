import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../kit/until.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import { frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import type { ServiceProcess } from '../support/cluster/service-process.ts';
import { drawTree, type ExportedSpan, joinSegments } from '../support/telemetry/exported-spans.ts';
import { OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';

/** Two seconds of text, so that the agent still writes when a process dies. */
const TOKENS = countingTokens(100);
/** Longer than the test, so that only spans which are exported at once survive a killed process. */
const EXPORT_DELAY_MS = 600_000;

const RAW = 'a2a.raw.{shard}.{taskId}.{writer}';
const WORK = 'a2a.work.{role}.{taskId}';

/** The span that a process has exported when it dies, and how many spans of this kind the trace has in the end. */
const DEATHS = [
  { service: 'ingress', name: 'send_streaming_message', count: 1 },
  { service: 'relay', name: `receive ${RAW}`, count: 2 },
  { service: 'supervisor', name: `receive ${WORK}`, count: 2 },
  { service: 'sub-agent', name: `receive ${WORK}`, count: 2 },
] as const;

test('an ingress, a relay, a supervisor or an agent that dies with the first frame leaves one tree without orphans', {
  timeout: 240_000,
}, async () => {
  const receiver = new OtlpReceiver();
  const remote = await startCountingAgent(TOKENS, 20);
  const traces: { service: string; traceId: string; count: number; name: string }[] = [];
  try {
    const cluster = await Cluster.start({
      agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
      ingresses: 2,
      relays: 2,
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: await receiver.start(),
        OTEL_BSP_SCHEDULE_DELAY: `${EXPORT_DELAY_MS}`,
        HOPLINE_ACK_WAIT_MS: '1500',
      },
    });
    try {
      for (const { service, name, count } of DEATHS) {
        const isIts = (span: ExportedSpan) => span.name === name && span.service === `hopline-${service}`;
        const traceId = await killAtFirstFrame(cluster, receiver, isIts);
        traces.push({ service, traceId, count, name });
      }
      // A process that ends in order exports the rest.
      await Promise.all(cluster.services.map(one => one.kill('SIGTERM')));
    } finally {
      await cluster[Symbol.asyncDispose]();
    }
  } finally {
    await remote.close();
    await receiver.stop();
  }
  for (const { service, traceId, count, name } of traces) {
    const spans = joinSegments(receiver.ofTrace(traceId));
    const tree = drawTree(spans);
    assert.match(tree, /^send_streaming_message \[server\]\n( .*(\n|$))+$/, `${service}: one tree\n${tree}`);
    const same = spans.filter(span => span.name === name && span.service === `hopline-${service}`);
    // A relay that starts again may take its shard back.
    assert.ok(same.length === count || (service === 'relay' && same.length > count), `${service}\n${tree}`);
    assert.ok(
      spans.some(span => span.name === 'invoke_agent counter' && !span.isError),
      `${service}\n${tree}`,
    );
  }
});

/** Asks a question, kills the process with its first span as soon as that is exported, and waits for the end of the task. Resolves with the trace id. */
async function killAtFirstFrame(
  cluster: Cluster,
  receiver: OtlpReceiver,
  isIts: (span: ExportedSpan) => boolean,
): Promise<string> {
  const [first, second] = cluster.ingresses as [ServiceProcess, ServiceProcess];
  let id = '';
  for await (const { event } of frames(first.url, { text: 'count' })) {
    if (!('task' in event)) continue;
    id = event.task.id;
    break;
  }
  const span = await receiver.until('the first span of the process', () => receiver.ofTask(id).find(isIts));
  const killed = cluster.services.find(({ spec }) => spec.instance === span.resource['service.instance.id'])!;
  await killed.kill();
  await killed.start();
  await until(async () => {
    const { result } = (await (await rpc(second.url, { method: 'tasks/get', params: { id } })).json()) as {
      result?: { status: { state: string } };
    };
    return result?.status.state === 'completed';
  }, 'the end of the task');
  return span.traceId;
}
