import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { freePort } from '@hopline/local-cluster';
import type { NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';
import { OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';

const SECRET = `planted-bearer-${randomUUID()}`;
const PIECES = Array.from({ length: 40 }, (_, at) => `p${at} `);

let remote: RemoteAgent;
let cluster: Cluster;
let nats: NatsConnection;
const published: string[] = [];
const receiver = new OtlpReceiver();

before(async () => {
  const endpoint = await receiver.start();
  remote = await startRemoteAgent({
    dialect: '1.0',
    script: answer(PIECES),
    card: { streaming: false, pushNotifications: true },
    pushes: 'last',
  });
  cluster = await Cluster.start({
    agents: [{ name: 'argocd', adapter: 'a2a', url: remote.url, auth: { bearerEnv: 'ARGOCD_TOKEN' } }],
    env: {
      ARGOCD_TOKEN: SECRET,
      HOPLINE_LOG_LEVEL: 'trace',
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    },
  });
  nats = await connect({ servers: cluster.nats.url });
  nats.subscribe('>', {
    callback: (_error, message) => {
      published.push(`${message.subject} ${JSON.stringify([...(message.headers ?? [])])} ${message.string()}`);
    },
  });
  await nats.flush();
});

after(async () => {
  await nats?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await receiver.stop();
});

test('credentials for an agent, and its webhook token, never appear in a log, span, subject or record [S4-43]', {
  timeout: 120_000,
}, async () => {
  const fold = new Fold();
  for await (const { event } of frames(cluster.url, { text: 'go' })) fold.add(event);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.ok([...fold.artifacts.values()].some(artifact => artifact.text === PIECES.join('')));
  assert.ok(remote.requests.length > 0);
  for (const { headers } of remote.requests) assert.equal(headers.authorization, `Bearer ${SECRET}`);
  const token = /\/webhooks\/([\w-]{43})/.exec(JSON.stringify(remote.requests[0]?.params))?.[1] ?? '';
  assert.equal(token.length, 43);
  assert.deepEqual(remote.pushStatuses, [204]);

  await until(() => new Set(receiver.spans.map(span => span.service)).size >= 4, 'the spans of four services');
  await nats.flush();
  const everywhere = {
    printed: cluster.services.map(service => service.output).join('\n'),
    spans: Buffer.concat(receiver.bodies).toString('latin1'),
    published: published.join('\n'),
  };
  assert.match(everywhere.printed, /agent listening/);
  assert.match(everywhere.published, /a2a\.raw\./);
  assert.ok(receiver.spans.some(span => span.service.includes('sub-agent')));
  for (const [where, text] of Object.entries(everywhere))
    for (const secret of [SECRET, token]) assert.ok(!text.includes(secret), where);
});

test('a sub-agent without its credentials does not start, and names the field', async () => {
  const entry = { name: 'argocd', adapter: 'a2a', url: remote.url, auth: { apiKeyEnv: 'NOT_THERE' } };
  const env = { NATS_URL: cluster.nats.url, HOPLINE_AGENT: JSON.stringify(entry) };
  const lame = new ServiceProcess({ service: 'sub-agent', instance: 'lame', env }, await freePort());
  await assert.rejects(lame.start(), /agent \\?"argocd\\?": the variable that auth\.apiKeyEnv names is not set/);
  assert.doesNotMatch(lame.output, /NOT_THERE/);
});
