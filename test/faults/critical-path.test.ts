import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MetricsText } from '@hopline/local-cluster';
import type { TaskTrace } from '@hopline/task-audit';
import { until } from '../kit/until.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { type Frame, frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import type { ServiceProcess } from '../support/cluster/service-process.ts';

/** Six seconds of text. Each chunk is held while the agent goes on writing. */
const TOKENS = countingTokens(300);
const PATH = 'hopline_path_time_seconds_total';

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startCountingAgent(TOKENS, 20);
  // Its own cluster: relays may still measure turns that another file has left.
  cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    relays: 2,
    env: { HOPLINE_ACK_WAIT_MS: '1500' },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

async function readMetrics({ url }: ServiceProcess): Promise<MetricsText> {
  return new MetricsText(await (await fetch(`${url}/metrics`)).text());
}

/** Turns that a relay has measured since its process started. */
const measuredBy = (metrics: MetricsText) => metrics.sum('hopline_path_turns_total', { outcome: 'measured' });

const startOf = (metrics: MetricsText) => metrics.sum('process_start_time_seconds');

/** Asks a question, acts in mid-stream (which may cut the stream), and returns the trace of the task when the task has ended. */
async function ask(act: () => Promise<unknown> = async () => {}): Promise<TaskTrace> {
  const list: Frame[] = [];
  let acted: Promise<unknown> | undefined;
  try {
    for await (const frame of frames(cluster.url, { text: 'count' })) {
      list.push(frame);
      if (list.length === 20) acted = act();
    }
  } catch (thrown) {
    if (acted === undefined) throw thrown;
  }
  await acted;
  const { id } = list[0]!.result as { id: string };
  await until(() => isCompleted(id), 'the end of the task');
  return (await (await fetch(`${cluster.url}/tasks/${id}/audit`)).json()) as TaskTrace;
}

/** The same, together with what the relays measured for the task. */
async function askMeasured(act?: () => Promise<unknown>): Promise<{ trace: TaskTrace; measured: Map<string, number> }> {
  const earlier = await Promise.all(cluster.relays.map(readMetrics));
  const trace = await ask(act);
  let measured = new Map<string, number>();
  await until(async () => {
    for (const [index, relay] of cluster.relays.entries()) {
      const now = await readMetrics(relay);
      // A relay that was killed counts from 0.
      const isSame = startOf(now) === startOf(earlier[index]!);
      const before = isSame ? earlier[index]! : new MetricsText('');
      if (measuredBy(now) === measuredBy(before)) continue;
      measured = new Map([...now.by(PATH, 'hop')].map(([hop, s]) => [hop, s - (before.by(PATH, 'hop').get(hop) ?? 0)]));
      return true;
    }
    return false;
  });
  return { trace, measured };
}

async function isCompleted(id: string): Promise<boolean> {
  const response = await rpc(cluster.url, { method: 'tasks/get', params: { id } });
  const { result } = (await response.json()) as { result?: { status: { state: string } } };
  return result?.status.state === 'completed';
}

/** Checks that the named hops cover the one turn of a task, and returns their milliseconds. */
function coveredMsOf(trace: TaskTrace): number {
  assert.equal(trace.turns.length, 1);
  const { fromMs, toMs, path } = trace.turns[0]!;
  const coveredMs = path.reduce((sum, part) => sum + part.toMs - part.fromMs, 0);
  assert.ok(coveredMs >= 0.99 * (toMs - fromMs), `${coveredMs} of ${toMs - fromMs} ms: ${JSON.stringify(path)}`);
  return coveredMs;
}

function assertMeasured({ trace, measured }: Awaited<ReturnType<typeof askMeasured>>): void {
  const coveredMs = coveredMsOf(trace);
  const costs = Map.groupBy(trace.costs, ({ hop }) => hop);
  for (const [hop, own] of costs) {
    const ms = own.reduce((sum, cost) => sum + cost.ms, 0);
    assert.ok(
      Math.abs(measured.get(hop)! * 1_000 - ms) < 0.01,
      `${hop}: ${ms} ms in the trace, ${measured.get(hop)} s in the metric`,
    );
  }
  const all = [...measured.values()].reduce((sum, seconds) => sum + seconds, 0);
  assert.ok(Math.abs(all * 1_000 - coveredMs) < 0.01, `${all} s`);
  // The sum over all chunks is longer than anything else, and delayed only the last one.
  const heldMs = trace.events.flatMap(({ chunk }) => (chunk === undefined ? [] : [chunk.heldMs]));
  const pathMs = (measured.get('hold') ?? 0) * 1_000;
  assert.ok(
    pathMs <= Math.max(...heldMs) + 0.01 && trace.costs[0]!.hop !== 'hold',
    `hold: ${pathMs} ms, ${JSON.stringify(trace.costs)}`,
  );
}

test('the relay measures what the trace shows: the agent that talks is first, never the sum of holds [S2-41]', {
  timeout: 120_000,
}, async () => {
  const asked = await askMeasured();
  assertMeasured(asked);
  assert.equal([...asked.measured].toSorted(([, a], [, b]) => b - a)[0]![0], 'talk');
});

const restart = async (service: ServiceProcess) => {
  await service.kill();
  await service.start();
};

test('named hops cover the time from question to end after the death of a relay, an agent or a supervisor [S2-41]', {
  timeout: 240_000,
}, async () => {
  // Both relays own shards, and only the death of the owner makes a takeover.
  const relay = await askMeasured(() => Promise.all(cluster.relays.map(restart)));
  assertMeasured(relay);
  assert.ok(relay.trace.relays.some(({ takeover }) => takeover !== undefined));
  const agent = await askMeasured(() => restart(cluster.agents[0]!));
  assertMeasured(agent);
  assert.ok(agent.measured.get('redelivery')! > 0, JSON.stringify([...agent.measured]));
  const supervisor = await askMeasured(() => restart(cluster.supervisors[0]!));
  assertMeasured(supervisor);
});

// A relay measures only a sample, so these tests read the trace.
test('named hops cover the time from question to end after the death of an ingress or of NATS [S2-41]', {
  timeout: 240_000,
}, async () => {
  coveredMsOf(await ask(() => restart(cluster.ingresses[0]!)));
  coveredMsOf(
    await ask(async () => {
      await cluster.nats.kill();
      await cluster.nats.restart();
    }),
  );
});
