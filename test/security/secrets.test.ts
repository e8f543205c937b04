import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { DIALECTS, type JsonObject } from '@hopline/a2a';
import type { NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { userMessage } from '../kit/user-message.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { type Issuer, startIssuer } from '../support/cluster/issuer.ts';
import { OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';

/** Secrets planted in requests, which the test searches for in all output. */
const SECRETS = {
  key: `planted-key-${randomUUID()}`,
  /** A webhook token, which A2A puts into the body. */
  push: `planted-push-${randomUUID()}`,
  query: `planted-query-${randomUUID()}`,
  cookie: `planted-cookie-${randomUUID()}`,
  refused: `planted-refused-${randomUUID()}`,
};
const TEXT = `planted-text-${randomUUID()}`;
const ANSWER = `planted-answer-${randomUUID()}`;

type Published = { subject: string; headers: string; payload: string };

let folder: string;
let issuer: Issuer;
let remote: RemoteAgent;
let cluster: Cluster;
let nats: NatsConnection;
const published: Published[] = [];
const receiver = new OtlpReceiver();

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopline-secrets-'));
  const keys = join(folder, 'keys.json');
  await writeFile(keys, JSON.stringify([{ key_sha256: hash('sha256', SECRETS.key), subject: 'ci' }]));
  issuer = await startIssuer();
  const endpoint = await receiver.start();
  remote = await startRemoteAgent({ dialect: '0.3', script: answer([ANSWER, ' ok']) });
  cluster = await Cluster.start({
    agents: [{ name: 'argocd', adapter: 'a2a', url: remote.url }],
    env: {
      ...issuer.env,
      HOPLINE_AUTH_API_KEYS_FILE: keys,
      HOPLINE_LOG_LEVEL: 'trace',
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    },
  });
  nats = await connect({ servers: cluster.nats.url });
  // All subjects: stored records, work, key-value entries, requests to the broker and its responses.
  nats.subscribe('>', {
    callback: (_error, message) => {
      const headers = message.headers === undefined ? '' : JSON.stringify([...message.headers]);
      published.push({ subject: message.subject, headers, payload: message.string() });
    },
  });
  await nats.flush();
});

after(async () => {
  await nats?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  issuer?.close();
  await receiver.stop();
  await rm(folder, { recursive: true, force: true });
});

const message = (): JsonObject => userMessage(TEXT);

/** Requests with each secret in each dialect: accepted, rejected, and malformed. Resolves with the statuses. */
async function plant(token: string): Promise<number[]> {
  const push = {
    url: 'https://webhook.example/',
    token: SECRETS.push,
    authentication: { scheme: 'Bearer', credentials: SECRETS.push },
  };
  const statuses: number[] = [];
  const url = `${cluster.url}/?access_token=${SECRETS.query}&api_key=${SECRETS.query}`;
  for (const credentials of [{ authorization: `Bearer ${token}` }, { 'x-api-key': SECRETS.key }]) {
    const headers = { ...credentials, cookie: `session=${SECRETS.cookie}` };
    for (const dialect of ['1.0', '0.3'] as const) {
      const { encodeSend, methods } = DIALECTS[dialect];
      const message = userMessage(TEXT);
      for (const operation of ['send', 'stream'] as const) {
        const params = encodeSend({ message: { ...message, messageId: randomUUID() }, blocking: true });
        const response = await rpc(url, { dialect, method: methods[operation]!, params, headers });
        statuses.push(response.status);
        await response.text();
      }
    }
    const withPush = { message: message(), configuration: { taskPushNotificationConfig: push } };
    await (await rpc(url, { dialect: '1.0', method: 'SendMessage', params: withPush, headers })).text();
    const old = { id: randomUUID(), message: { role: 'user', parts: [{ type: 'text', text: TEXT }] }, pushNotification: push };
    await (await rpc(url, { method: 'tasks/send', params: old, headers })).text();
    for (const body of ['{', '[]', '{"id":{}}']) {
      const broken = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body };
      await (await fetch(url, broken)).text();
    }
  }
  for (const headers of [
    { authorization: `Bearer ${SECRETS.refused}` },
    { 'x-api-key': SECRETS.refused },
    { authorization: `Basic ${SECRETS.refused}` },
  ]) {
    const params = { message: message() };
    const response = await rpc(url, {
      dialect: '1.0',
      method: 'SendMessage',
      params,
      headers: headers as Record<string, string>,
    });
    statuses.push(response.status);
    const refusal = await response.text();
    for (const secret of Object.values(SECRETS)) assert.ok(!refusal.includes(secret), 'an error quotes no secret');
  }
  return statuses;
}

test('credentials never appear in log lines, subjects, records, work items, keys, headers or spans; text only in messages [S4-43]', {
  timeout: 120_000,
}, async () => {
  const token = await issuer.token({ sub: 'ann', tenant: 'acme' });
  const [, claims = '', signature = ''] = token.split('.');
  assert.deepEqual(await plant(token), [...Array(8).fill(200), 401, 401, 401]);
  await until(() => new Set(receiver.spans.map(span => span.service)).size >= 4, 'the spans of four services');
  await nats.flush();

  const printed = cluster.services.map(service => service.output);
  const spans = Buffer.concat(receiver.bodies).toString('latin1');
  const records = published.filter(({ subject }) => subject.startsWith('a2a.'));
  for (const prefix of ['a2a.raw.', 'a2a.log.', 'a2a.work.'])
    assert.ok(
      records.some(({ subject }) => subject.startsWith(prefix)),
      prefix,
    );
  assert.ok(
    published.some(({ subject }) => subject.startsWith('$KV.')),
    'key-value entries were seen',
  );
  for (const output of printed) assert.match(output, /"msg":"ready"/, 'the output is complete');
  assert.ok(spans.length > 1_000);

  const everywhere = {
    printed: printed.join('\n'),
    spans,
    subjects: published.map(({ subject }) => subject).join('\n'),
    headers: published.map(({ headers }) => headers).join('\n'),
  };
  const { push, ...credentials } = { ...SECRETS, token, claims, signature };
  for (const [where, text] of Object.entries(everywhere)) {
    for (const secret of [...Object.values(credentials), push, TEXT, ANSWER])
      assert.ok(!text.includes(secret), `${where}: ${secret}`);
  }
  const payloads = published.map(({ payload }) => payload);
  for (const secret of Object.values(credentials)) {
    for (const [index, payload] of payloads.entries())
      assert.ok(!payload.includes(secret), `${published[index]!.subject}: ${secret}`);
  }
  // Only the bucket of configurations contains a webhook's token.
  for (const { subject, payload } of published) {
    assert.ok(!payload.includes(push) || subject.startsWith('$KV.hopline_push'), `${subject}: a webhook's token`);
  }
  assert.ok(
    payloads.some(payload => payload.includes(TEXT)) && payloads.some(payload => payload.includes(ANSWER)),
    'expected content was seen',
  );
});
