import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SHARDS_DEFAULT } from '@hopline/events';
import { answer, type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import type { ServiceProcess } from '../../support/cluster/service-process.ts';
import { OtlpReceiver } from '../../support/telemetry/otlp-receiver.ts';

const BALANCED_MS_MAX = 60_000;

const receiver = new OtlpReceiver();
let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  const endpoint = await receiver.start();
  remote = await startRemoteAgent({ dialect: '0.3', script: answer(['ok']) });
  cluster = await Cluster.start({
    relays: 2,
    shards: 'product',
    agents: [{ name: 'argocd', adapter: 'a2a', url: remote.url }],
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_METRICS_EXPORTER: 'prometheus,otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '300',
    },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await receiver.stop();
});

/** One scrape of a relay: how many shards it owns, and the shards that have a lag. */
async function scrape({ url }: ServiceProcess): Promise<{ owned: number; lags: string[] }> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n');
  const owned = lines.find(line => line.startsWith('hopline_owned_shards{'));
  const lags = lines.flatMap(line => /^hopline_shard_lag\{.*shard="(\d+)"/.exec(line)?.[1] ?? []);
  return { owned: Number(owned?.split(' ').at(-1)), lags };
}

/** Waits until each of these relays owns as many shards as wanted; resolves with the shards that have a lag. */
async function owning(relays: readonly ServiceProcess[], wanted: number): Promise<string[][]> {
  for (const endsAt = performance.now() + BALANCED_MS_MAX; ; await sleep(100)) {
    const seen = await Promise.all(relays.map(scrape));
    if (seen.every(({ owned }) => owned === wanted)) return seen.map(({ lags }) => lags);
    assert.ok(performance.now() < endsAt, `${JSON.stringify(seen)}, wanted ${wanted}`);
  }
}

async function pushed(instance: string, wanted: readonly string[]): Promise<void> {
  const shards = () => receiver.gauge(instance, 'hopline.shard.lag').map(({ shard }) => String(shard));
  for (const endsAt = performance.now() + BALANCED_MS_MAX; shards().sort().join() !== [...wanted].sort().join(); await sleep(100))
    assert.ok(performance.now() < endsAt, `${instance} pushes the lag of ${shards()}, and owns ${wanted}`);
}

test('a relay exports the lag of only the shards that it owns, even after it gave some of them away', {
  timeout: 240_000,
}, async () => {
  const [first, second] = cluster.relays as [ServiceProcess, ServiceProcess];
  const half = SHARDS_DEFAULT / 2;
  await owning([first, second], half);
  await first.kill();
  const [all] = await owning([second], SHARDS_DEFAULT);
  assert.equal(all?.length, SHARDS_DEFAULT);
  // The first relay gets half of the shards back.
  await first.start();
  const [ofFirst, ofSecond] = (await owning([first, second], half)) as [string[], string[]];
  assert.equal(ofSecond.length, half, `shards with a lag: ${ofSecond}`);
  assert.equal(new Set([...ofFirst, ...ofSecond]).size, SHARDS_DEFAULT, 'each shard has one owner');
  await pushed('relay-1', ofFirst);
  await pushed('relay-2', ofSecond);
});
