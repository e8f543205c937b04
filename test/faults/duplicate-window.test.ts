import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fold } from '@hopline/a2a';
import { WORK_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** About six seconds of text, several times the duplicate window. */
const TOKENS = countingTokens(400);
const PAUSE_MS = 15;
const WINDOW_MS = 500;

let runs = 0;
let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* () {
      runs += 1;
      for (const token of TOKENS) {
        yield { token };
        yield { pause: PAUSE_MS };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.start({ agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }] });
  const nc = await connect({ servers: cluster.nats.url });
  await (await jetstreamManager(nc)).streams.update(WORK_STREAM, { duplicate_window: nanos(WINDOW_MS) });
  await nc.close();
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

for (const service of ['supervisors', 'relays'] as const) {
  test(`a call runs only once if the ${service} restart after the duplicate window of its work [S0-1]`, {
    timeout: 120_000,
  }, async () => {
    runs = 0;
    const fold = new Fold();
    let restarted: Promise<void> | undefined;
    for await (const { event } of frames(cluster.url, { text: 'count' })) {
      fold.add(event);
      restarted ??= fold.textOf('streaming_result') === '' ? undefined : restartAfterWindow(cluster[service][0]!);
    }
    await restarted;
    assert.equal(runs, 1);
    assert.deepEqual([fold.violations, fold.task?.status.state], [[], 'TASK_STATE_COMPLETED']);
    for (const name of ['streaming_result', 'partial_result']) assert.equal(fold.textOf(name), TOKENS.join(''));
  });
}

async function restartAfterWindow(service: { kill(): Promise<void>; start(): Promise<void> }): Promise<void> {
  await sleep(2 * WINDOW_MS);
  await service.kill();
  await service.start();
}
