import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, hash, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type AgentCard as SdkCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { DIALECTS, foldEvents, type Message } from '@hopline/a2a';
import { type AgentCard, DRAFT_EXTENSION_URI, RESUME_EXTENSION_URI } from '@hopline/agent-card';
import { verifyAgentCard } from '@hopline/agent-card/verify';
import { createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import { createRemoteJWKSet, type JWK } from 'jose';
import { DRIVERS } from '../conformance/client-drivers.ts';
import { until } from '../kit/until.ts';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, messageParams, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';

/** A killed agent is removed after AGENT_SILENCE_MS_MAX of silence. */
const GONE_MS_MAX = 60_000;
const PATH = '/.well-known/agent-card.json';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const API_KEY = `key-${randomUUID()}`;
const skill = (id: string) => ({ id, name: id, description: id, tags: ['t'] });

let folder: string;
let remote: RemoteAgent;
let cluster: Cluster;
let silent: ServiceProcess;
/** A cluster with authentication: only authenticated callers see its agents. */
let asking: ServiceProcess;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'card-'));
  await writeFile(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  remote = await startRemoteAgent({
    dialect: '0.3',
    card: false,
    script: [{ token: 'one ' }, { token: 'two ' }, { token: 'three' }, { complete: true }],
  });
  const entry = (name: string) => ({ name, adapter: 'a2a', url: remote.url, skills: [skill('count'), skill(`only-${name}`)] });
  cluster = await Cluster.start({
    agents: [entry('alpha'), entry('beta')],
    ingresses: 2,
    env: { HOPLINE_CARD_KEY_FILE: join(folder, 'key.pem'), HOPLINE_CARD_KEY_ID: 'k1', HOPLINE_CARD_DESCRIPTION: 'Ägents 🎯' },
  });
  const keys = join(folder, 'keys.json');
  await writeFile(keys, JSON.stringify([{ key_sha256: hash('sha256', API_KEY), subject: 'ann' }]));
  silent = await another('ingress-silent', { HOPLINE_STREAMING: 'false' });
  asking = await another('ingress-asking', {
    HOPLINE_AUTH_API_KEYS_FILE: keys,
    HOPLINE_CARD_SKILLS: 'callers',
    HOPLINE_CARD_KEY_FILE: join(folder, 'key.pem'),
    HOPLINE_CARD_KEY_ID: 'k1',
  });
  await until(async () => (await skillsOf(cluster.url)).length === 4, undefined, GONE_MS_MAX);
});

after(async () => {
  await silent?.kill();
  await asking?.kill();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await rm(folder, { recursive: true });
});

async function another(instance: string, env: Record<string, string>): Promise<ServiceProcess> {
  const started = new ServiceProcess(
    { service: 'ingress', instance, env: { NATS_URL: cluster.nats.url, ...env } },
    await freePort(),
  );
  await started.start();
  return started;
}

const get = (url: string, headers: Record<string, string> = {}) => fetch(`${url}${PATH}`, { headers });
const cardAt = async (url: string) => (await (await get(url)).json()) as AgentCard & { signatures?: unknown[] };
const skillsOf = async (url: string) => (await cardAt(url)).skills.map(({ id }) => id);
const keyOf = async (kid: string) => (kid === 'k1' ? publicKey.export({ format: 'jwk' }) : undefined);

test('the card of a cluster has all members, at both paths, equal on each ingress [S3-1 S4-1]', async () => {
  const card = await cardAt(cluster.url);
  assert.deepEqual([card.name, card.description, card.version], ['Hopline', 'Ägents 🎯', '0.1.0']);
  assert.deepEqual(
    card.supportedInterfaces.map(one => `${one.protocolBinding} ${one.protocolVersion} ${one.url}`),
    [
      `JSONRPC 1.0 ${cluster.url}/`,
      `HTTP+JSON 1.0 ${cluster.url}`,
      `JSONRPC 0.3 ${cluster.url}/`,
      `HTTP+JSON 0.3 ${cluster.url}`,
    ],
  );
  assert.deepEqual([card.url, card.preferredTransport, card.protocolVersion], [`${cluster.url}/`, 'JSONRPC', '0.3.0']);
  assert.deepEqual(await skillsOf(cluster.url), ['count', 'only-alpha', 'beta.count', 'only-beta']);
  assert.equal(new Set(card.skills.map(({ name }) => name)).size, 4);
  const { extensions = [], ...flags } = card.capabilities;
  assert.deepEqual(flags, {
    streaming: true,
    pushNotifications: false,
    stateTransitionHistory: true,
    extendedAgentCard: false,
  });
  assert.deepEqual(
    extensions.map(({ uri, required }) => [uri, required]),
    [
      [RESUME_EXTENSION_URI, false],
      [DRAFT_EXTENSION_URI, false],
    ],
  );
  const older = (await (await fetch(`${cluster.url}/.well-known/agent.json`)).json()) as AgentCard;
  assert.deepEqual(older, card);
});

test('the SDK and our verifier accept the signed card, and both detect a changed byte [S4-5]', async () => {
  const text = await (await get(cluster.url)).text();
  const verify = verifyAgentCardSignature(async () => publicKey);
  const resolved = (body: string): Promise<SdkCard> =>
    new DefaultAgentCardResolver({ fetchImpl: async () => new Response(body) }).resolve(cluster.url);
  await verify(await resolved(text));
  const { signature, agent } = await createClient({ url: cluster.url }).card({ keyOf });
  assert.deepEqual([signature, agent.name], [{ kid: 'k1', whole: true }, 'Hopline']);
  // Changes the first letter of each string outside the signatures.
  const [unsigned = '', signatures = ''] = text.split(/(?=,"signatures":)/);
  const places = [...unsigned.matchAll(/:"[a-z]/gi)].map(({ index }) => index + 2);
  assert.ok(places.length > 20);
  const { debug } = console;
  console.debug = () => {};
  try {
    let found = 0;
    for (const place of places) {
      const changed = `${unsigned.slice(0, place)}~${unsigned.slice(place + 1)}${signatures}`;
      const client = createClient({ url: cluster.url, fetch: async () => new Response(changed) });
      const ours = await client.card({ keyOf }).catch(() => undefined);
      assert.notEqual(ours?.signature?.whole, true, changed.slice(place - 20, place + 20));
      if (ours === undefined) {
        found += 1;
        await assert.rejects(async () => verify(await resolved(changed)), /No valid signatures/);
      }
    }
    // The other members exist only in 0.3, and neither verifier covers them here.
    assert.ok(found > 15, `${found} of ${places.length}`);
  } finally {
    console.debug = debug;
  }
});

test("the SDK's verifier finds the key at the signature's jku on any ingress [S4-5]", async () => {
  const balanced = await Cluster.start({
    agents: [],
    balanced: true,
    supervisors: 0,
    env: { HOPLINE_CARD_KEY_FILE: join(folder, 'key.pem') },
  });
  await using _ = balanced;
  const urls: string[] = [];
  const keyAt = async (kid: string, jku?: string) => {
    urls.push(jku ?? '');
    const response = await fetch(jku!);
    const text = await response.text();
    // The SDK prints errors that are thrown here.
    assert.equal(response.status, 200, text);
    const { keys } = JSON.parse(text) as { keys: JWK[] };
    return createPublicKey({ key: keys.find(key => key.kid === kid)!, format: 'jwk' });
  };
  const resolved = await new DefaultAgentCardResolver().resolve(balanced.url);
  await verifyAgentCardSignature(keyAt)(resolved);
  await assert.rejects(async () => verifyAgentCardSignature(keyAt)({ ...resolved, name: 'Hopl1ne' }), /No valid signatures/);
  assert.deepEqual([...new Set(urls)], [`${balanced.url}/.well-known/jwks.json`]);
  const set = createRemoteJWKSet(new URL(urls[0]!));
  const { agent, signature } = await createClient({ url: balanced.url }).card({ keyOf: kid => set({ kid, alg: 'ES256' }) });
  assert.deepEqual([agent.name, signature?.whole], ['Hopline', true]);
  const documents = await Promise.all(balanced.ingresses.map(async ({ url }) => fetch(`${url}/.well-known/jwks.json`)));
  assert.equal(new Set(await Promise.all(documents.map(one => one.text()))).size, 1);
  assert.equal(new Set(documents.map(one => one.headers.get('etag'))).size, 1);
});

test('a request for an unchanged card gets 304, for any form of the tag [S3-1]', async () => {
  const response = await get(cluster.url);
  const etag = response.headers.get('etag')!;
  assert.match(etag, /^W\/"/);
  assert.match(response.headers.get('cache-control') ?? '', /^public, max-age=\d+$/);
  assert.ok(response.headers.get('last-modified'));
  for (const tag of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
    assert.equal((await get(cluster.url, { 'if-none-match': tag })).status, 304);
  }
  assert.equal((await get(cluster.url, { 'if-none-match': '"other"' })).status, 200);
});

test('if streaming is off, the card does not offer it, and each dialect refuses a stream [S3-2 S4-2]', async () => {
  assert.equal((await cardAt(silent.url)).capabilities.streaming, false);
  for (const [dialect, method, params] of [
    ['1.0', 'SendStreamingMessage', DIALECTS['1.0'].encodeSend({ message: message(), blocking: true })],
    ['0.3', 'message/stream', messageParams('count')],
    ['0.3', 'tasks/sendSubscribe', { id: randomUUID(), message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } }],
    ['0.3', 'tasks/resubscribe', { id: 'x' }],
    ['1.0', 'SubscribeToTask', { id: 'x' }],
  ] as const) {
    const response = await rpc(silent.url, { dialect, method, params });
    const { error } = (await response.json()) as { error?: { code: number } };
    assert.equal(error?.code, -32004, method);
  }
  const { task } = (await createClient({ url: silent.url }).send('count')) as { task: { status: { state: string } } };
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
});

function message(): Message {
  return userMessage('count');
}

test('push notifications and the extended card are rejected when the card does not offer them [S4-2]', async () => {
  const push = await rpc(cluster.url, {
    dialect: '1.0',
    method: 'CreateTaskPushNotificationConfig',
    params: { taskId: 'x', url: 'https://hook.example' },
  });
  assert.equal(((await push.json()) as { error: { code: number } }).error.code, -32003);
  const extended = await rpc(cluster.url, { dialect: '1.0', method: 'GetExtendedAgentCard', params: {} });
  assert.equal(((await extended.json()) as { error: { code: number } }).error.code, -32004);
});

const known = { 'x-api-key': API_KEY };

async function extendedCard(headers: Record<string, string>) {
  const response = await rpc(asking.url, { dialect: '1.0', method: 'GetExtendedAgentCard', params: {}, headers });
  return { status: response.status, ...((await response.json()) as { result?: AgentCard; error?: object }) };
}

/** Agents of an extended card, as `alpha live`. */
function agentsOf(card: AgentCard | undefined): string[] {
  const params = card?.capabilities.extensions?.map(extension => extension.params as { agents?: Record<string, string>[] });
  return params?.flatMap(({ agents = [] }) => agents.map(({ name, health }) => `${name} ${health}`)) ?? [];
}

test('the extended card is signed, lists each agent and skill, and requires authentication [S4-2]', async () => {
  await until(async () => agentsOf((await extendedCard(known)).result).length === 2, undefined, GONE_MS_MAX);
  const card = await cardAt(asking.url);
  assert.equal(card.capabilities.extendedAgentCard, true);
  assert.deepEqual(
    card.skills.map(({ id }) => id),
    ['chat'],
  );
  const stranger = await extendedCard({});
  assert.deepEqual([stranger.status, stranger.result], [401, undefined]);
  const { result } = await extendedCard(known);
  assert.deepEqual(agentsOf(result), ['alpha live', 'beta live']);
  assert.deepEqual(
    result?.skills.map(({ id }) => id),
    ['count', 'only-alpha', 'beta.count', 'only-beta'],
  );
  assert.equal((await verifyAgentCard({ ...result }, keyOf)).whole, true);
  const rest = await fetch(`${asking.url}/extendedAgentCard`, { headers: { ...known, 'a2a-version': '1.0' } });
  assert.deepEqual(await rest.json(), result);
  const answer = await rpc(asking.url, { method: 'agent/getAuthenticatedExtendedCard', params: {}, headers: known });
  const older = ((await answer.json()) as { result: AgentCard }).result;
  assert.deepEqual([result?.protocolVersion, older.protocolVersion], [undefined, '0.3.0'], 'each in the requested version');
  assert.deepEqual([older.skills, agentsOf(older)], [result?.skills, agentsOf(result)]);
  assert.equal((await verifyAgentCard({ ...older }, keyOf)).whole, true);
  const fetchImpl: typeof fetch = (url, init) =>
    fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), ...known } });
  const transports = [new JsonRpcTransportFactory({ fetchImpl })];
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports });
  const client = await new ClientFactory(options).createFromUrl(asking.url);
  assert.equal((await client.getAgentCard()).skills.length, 4);
});

/** Removes the generation that the extension adds from a frame. */
function plain({ id, result }: Frame): unknown {
  const copy = structuredClone(result) as Record<string, Record<string, unknown>>;
  const shown = (copy.task ?? copy.statusUpdate ?? copy.artifactUpdate ?? copy) as { metadata?: Record<string, unknown> };
  const { generation: _, ...others } = shown.metadata ?? {};
  if (Object.keys(others).length > 0) shown.metadata = others;
  else delete shown.metadata;
  return { id, result: copy };
}

function generationOf({ event }: Frame): unknown {
  if ('task' in event) return event.task.metadata?.generation;
  if ('statusUpdate' in event) return event.statusUpdate.metadata?.generation;
  return 'artifactUpdate' in event ? event.artifactUpdate.metadata?.generation : undefined;
}

test('frames with and without the resume extension differ only in the generation, on any ingress [S3-31]', async () => {
  const [first, second] = cluster.ingresses as [ServiceProcess, ServiceProcess];
  const names = { '1.0': 'a2a-extensions', '0.3': 'x-a2a-extensions' } as const;
  for (const dialect of ['1.0', '0.3'] as const) {
    const { methods } = DIALECTS[dialect];
    const headers = { [names[dialect]]: RESUME_EXTENSION_URI };
    const params = DIALECTS[dialect].encodeSend({ message: message(), blocking: true });
    const live = await collect(first.url, { dialect, method: methods.stream, params, headers });
    assert.deepEqual(
      live.map(generationOf),
      live.map((_, index) => index + 1),
    );
    assert.match(foldEvents(live.map(({ event }) => event)).textOf('streaming_result') ?? '', /one two three/);
    const [head] = live as [Frame];
    assert.ok('task' in head.event);
    const resumed = { dialect, method: methods.subscribe, params: { id: head.event.task.id }, lastEventId: head.id };
    const without = await collect(second.url, resumed);
    assert.ok(without.every(frame => generationOf(frame) === undefined));
    assert.deepEqual(
      without.map(({ id, result }) => ({ id, result })),
      live.slice(1).map(plain),
    );
    const active = await collect(second.url, { ...resumed, headers });
    assert.deepEqual(
      active.map(({ id, result }) => ({ id, result })),
      live.slice(1).map(({ id, result }) => ({ id, result })),
    );
    const answered = await rpc(second.url, { ...resumed, headers });
    assert.equal(answered.headers.get(names[dialect]), RESUME_EXTENSION_URI);
    await answered.body?.cancel();
  }
});

for (const driver of DRIVERS) {
  test(`${driver.name} reads the signed card and works as before [S4-1]`, async () => {
    const client = await driver.open(cluster.url);
    assert.equal(await client.agentName(), 'Hopline');
    const task = await client.send(message());
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  });
}

test('skills and ETag change with the registered agents, and the new card is signed [S3-1 S4-3]', {
  timeout: 120_000,
}, async () => {
  const before = (await get(cluster.url)).headers.get('etag');
  const [, beta] = cluster.agents as [ServiceProcess, ServiceProcess];
  await beta.kill('SIGTERM');
  await until(async () => (await skillsOf(cluster.url)).length === 2, undefined, GONE_MS_MAX);
  const gone = await get(cluster.url, { 'if-none-match': before! });
  assert.equal(gone.status, 200);
  assert.notEqual(gone.headers.get('etag'), before);
  const { agent, signature } = await createClient({ url: cluster.url }).card({ keyOf });
  assert.deepEqual(
    agent.skills.map(({ id }) => id),
    ['count', 'only-alpha'],
  );
  assert.equal(signature?.whole, true);
  await beta.start();
  await until(async () => (await skillsOf(cluster.url)).length === 4, undefined, GONE_MS_MAX);
  // Equal content has an equal tag.
  assert.equal((await get(cluster.url)).headers.get('etag'), before);
  // A killed agent does not deregister, so the extended card still lists it.
  await beta.kill('SIGKILL');
  await until(async () => (await skillsOf(cluster.url)).length === 2, undefined, GONE_MS_MAX);
  await until(
    async () => agentsOf((await extendedCard(known)).result).join() === 'alpha live,beta silent',
    undefined,
    GONE_MS_MAX,
  );
});
