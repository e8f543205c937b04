import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { StreamResponse } from '@hopline/a2a';
import { GrpcClient } from '@hopline/a2a-grpc/test-client';
import { ModelServer } from '../support/agents/model-server.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, messageParams, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster, SHARDS } from '../support/cluster/cluster.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';

/** Text that a careless split or a careless encoder would break. */
const TOKENS = Array.from({ length: 600 }, (_, index) => `${index} "Grüße" \\ 👩‍🚀\n`);
const TEXT = TOKENS.join('');
const ANSWER = 'streaming_result';
const AGENTS = ['remote', 'model'];
const GRPC_VERSIONS = ['1.0', '0.3'] as const;

let remote: RemoteAgent;
let model: ModelServer;
let nats: NatsServer;

before(async () => {
  remote = await startRemoteAgent({ dialect: '0.3', script: answer(TOKENS) });
  model = await ModelServer.start(() => [{ tokens: TOKENS }]);
  nats = await startNats();
});

after(async () => {
  await nats?.stop();
  await model?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** The relay's counters of the tokens that agents wrote, by agent. */
async function countedTokens(cluster: Cluster): Promise<Record<string, number>> {
  const text = await (await fetch(`${cluster.relays[0]!.url}/metrics`)).text();
  const lines = [...text.matchAll(/^hopline_tokens_total\{.*agent="(\w+)".*\} (\d+)$/gm)];
  return Object.fromEntries(lines.map(([, agent, count]) => [agent!, Number(count)]));
}

async function overGrpc(client: GrpcClient, version: (typeof GRPC_VERSIONS)[number], agent: string): Promise<string> {
  const parts = [{ text: 'go' }];
  const message = { messageId: randomUUID(), role: 'ROLE_USER', ...(version === '1.0' ? { parts } : { content: parts }) };
  const events: StreamResponse[] = await client
    .stream('SendStreamingMessage', { message, metadata: { agent } }, { version })
    .rest();
  return events
    .flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate.artifact] : []))
    .filter(({ name }) => name === ANSWER)
    .flatMap(({ parts }) => parts.map(part => part.text))
    .join('');
}

for (const fastPaths of ['on', 'off'])
  test(`with HOPLINE_FAST_PATHS=${fastPaths} every binding has the exact text of every adapter, and each token is counted once`, {
    timeout: 120_000,
  }, async () => {
    await using cluster = await Cluster.start({
      nats,
      shards: SHARDS,
      grpc: true,
      agents: [
        { name: 'remote', adapter: 'a2a', url: remote.url },
        { name: 'model', adapter: 'model', model: 'stand-in' },
      ],
      env: { HOPLINE_PREFIX: fastPaths, HOPLINE_FAST_PATHS: fastPaths, OPENAI_BASE_URL: model.url },
    });
    const client = new GrpcClient(`127.0.0.1:${cluster.ingresses[0]!.spec.env.HOPLINE_GRPC_PORT}`);
    try {
      for (const agent of AGENTS) {
        const frames = await collect(cluster.url, { params: messageParams('go', { metadata: { agent } }) });
        assert.equal(textOf(frames, ANSWER), TEXT, `${agent}, SSE`);
        for (const version of GRPC_VERSIONS)
          assert.equal(await overGrpc(client, version, agent), TEXT, `${agent}, gRPC ${version}`);
      }
    } finally {
      client.close();
    }
    const counted = await countedTokens(cluster);
    for (const agent of AGENTS) assert.equal(counted[agent], 3 * TOKENS.length, agent);
    for (const { output } of cluster.services)
      assert.match(output, new RegExp(`"HOPLINE_FAST_PATHS":"${fastPaths}"`), 'the settings of a service');
  });
