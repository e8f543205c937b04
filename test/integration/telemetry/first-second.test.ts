import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { until } from '../../kit/until.ts';
import { collect, shapeOf } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { OtlpReceiver } from '../../support/telemetry/otlp-receiver.ts';

const TASK_MS_MAX = 120_000;

const receiver = new OtlpReceiver();
let cluster: Cluster;

before(async () => {
  const endpoint = await receiver.start();
  // The process dies 0.3 s after the first token of each attempt, which is sooner than the export delay.
  const path = fileURLToPath(import.meta.resolve('../../support/agents/crashing-agent.ts'));
  cluster = await Cluster.start({
    agents: [{ name: 'deadly', adapter: 'module', path }],
    // On a busy machine a restart takes so long that the supervisor would abandon the agent.
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      HOPLINE_ACK_WAIT_MS: '5000',
      HOPLINE_AGENT_GONE_MS: '600000',
      HOPLINE_CODE_USER: 'same',
    },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await receiver.stop();
});

test('every attempt that died after its first token has exported its span and its line', {
  timeout: 240_000,
}, async () => {
  const [deadly] = cluster.agents;
  const isOver = { yes: false };
  let deaths = 0;
  const task = collect(cluster.url, { text: 'go' }).finally(() => (isOver.yes = true));
  while (!isOver.yes) {
    if (deadly!.hasEnded) {
      deaths += 1;
      await deadly!.start();
    }
    await sleep(50);
  }
  assert.equal(shapeOf((await task).at(-1)!), 'status:failed');
  assert.ok(deaths >= 2, `the agent has died ${deaths} times`);
  // NATS also counts a delivery that a dying process requested, so the numbers of attempts may have gaps.
  const lines = () => deadly!.output.split('\n').filter(line => line.includes('"turn taken"') && line.endsWith('}'));
  // A line arrives by a pipe, and may be later than the event of the client.
  await until(() => lines().length > deaths, 'a line of each attempt');
  const taken = lines().map(line => JSON.parse(line).attempt);
  assert.equal(taken.length, deaths + 1, `the attempts that died, and the one that ended the turn: ${taken.join()}`);
  const attempts = () => {
    const received = receiver.spans.filter(
      ({ service, name }) => service === 'hopline-sub-agent' && name === 'receive a2a.work.{role}.{taskId}',
    );
    return received.map(({ attributes }) => Number(attributes['hopline.attempt'])).sort();
  };
  await until(
    () => attempts().length >= taken.length,
    () => `spans of the attempts ${taken}, not ${attempts()}`,
    TASK_MS_MAX,
  );
  assert.deepEqual(attempts(), taken);
});
