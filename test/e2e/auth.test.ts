import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AgentCard } from '@a2a-js/sdk';
import { DIALECTS, type DialectName, type JsonObject, type Operation } from '@hopline/a2a';
import type { AgentCard as Card } from '@hopline/agent-card';
import { createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { isBalanced, reportTask } from '@hopline/task-audit';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { type Issuer, startIssuer } from '../support/cluster/issuer.ts';
import { ask } from '../support/cluster/legacy-client.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';

type Headers = Record<string, string>;

const API_KEY = `key-${randomUUID()}`;
const NOT_FOUND = -32001;

let folder: string;
let issuer: Issuer;
let agent: RemoteAgent;
let cluster: Cluster;
let ann: Headers;
/** Callers that do not own the task: another caller of the tenant, the same subject in another or no tenant, and an API key. */
let others: Record<string, Headers>;

function* play(text: string): Generator<Step> {
  if (text.startsWith('ask')) return yield { inputRequired: 'Which one?' };
  if (text.startsWith('hang')) return yield* [{ status: 'working' }, { hang: true }] as Step[];
  if (text.startsWith('slow')) {
    for (let n = 0; n < 60; n += 1) yield* [{ token: `${n} ` }, { pause: 100 }] as Step[];
  }
  yield* [{ token: 'done' }, { complete: true }] as Step[];
}

const bearer = async (claims = {}): Promise<Headers> => ({ authorization: `Bearer ${await issuer.token(claims)}` });

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hopline-auth-'));
  const keys = join(folder, 'keys.json');
  await writeFile(keys, JSON.stringify([{ key_sha256: hash('sha256', API_KEY), subject: 'ci', tenant: 'acme' }]));
  issuer = await startIssuer();
  agent = await startRemoteAgent({ dialect: '0.3', script: ({ text }) => play(text) });
  cluster = await Cluster.start({
    agents: [{ name: 'argocd', adapter: 'a2a', url: agent.url }],
    ingresses: 2,
    env: { ...issuer.env, HOPLINE_AUTH_API_KEYS_FILE: keys, HOPLINE_AUTH_CLOCK_TOLERANCE_MS: '0' },
  });
  ann = await bearer({ tenant: 'acme' });
  others = {
    'another caller': await bearer({ sub: 'bob', tenant: 'acme' }),
    'another tenant': await bearer({ tenant: 'umbrella' }),
    'no tenant': await bearer(),
    'a key': { 'x-api-key': API_KEY },
  };
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
  issuer?.close();
  await rm(folder, { recursive: true, force: true });
});

type Called = { status: number; challenge: string | null; code: number | undefined; result: JsonObject };
type CallOptions = { dialect?: DialectName; headers?: Headers; replica?: number; url?: string };

/** One JSON-RPC call, to the second replica by default. */
async function call(operation: Operation, params: JsonObject, options: CallOptions = {}): Promise<Called> {
  const { dialect = '1.0', headers = {}, replica = 1, url = cluster.ingresses[replica]!.url } = options;
  const method = DIALECTS[dialect].methods[operation]!;
  const version = dialect === 'legacy' ? { 'a2a-version': '0.1' } : {};
  const asked = dialect === 'legacy' ? '0.3' : dialect;
  const response = await rpc(url, { dialect: asked, method, params, headers: { ...version, ...headers } });
  const { error, result } = (await response.json()) as { error?: { code: number }; result: JsonObject };
  return { status: response.status, challenge: response.headers.get('www-authenticate'), code: error?.code, result };
}

async function rest(line: string, headers: Headers, body?: unknown, replica = 1) {
  const [method = '', path = ''] = line.split(' ');
  const response = await fetch(`${cluster.ingresses[replica]!.url}${path}`, {
    method,
    headers: { 'a2a-version': '1.0', 'content-type': 'application/a2a+json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a test fails where an expected member is missing.
  return { status: response.status, challenge: response.headers.get('www-authenticate'), body: (await response.json()) as any };
}

const message = (text: string, more = {}) => ({
  messageId: randomUUID(),
  role: 'ROLE_USER' as const,
  parts: [{ text }],
  ...more,
});
const paramsOf = (sent: ReturnType<typeof message>, dialect: DialectName = '1.0', blocking = true): JsonObject =>
  dialect === 'legacy' ? ask(randomUUID(), sent.parts[0]!.text) : DIALECTS[dialect].encodeSend({ message: sent, blocking });

/** Starts a task, and resolves with its id. */
async function begin(text: string, headers: Headers, more = {}): Promise<string> {
  const { result } = await call('send', paramsOf(message(text, more), '1.0', false), { headers });
  return (result.task as { id: string }).id;
}

test('without credentials each operation of each dialect gets 401 with a challenge, at the ingress and at the agent [S4-4]', async () => {
  const began = agent.requests.length;
  for (const url of [cluster.url, cluster.agents[0]!.url]) {
    for (const dialect of ['1.0', '0.3', 'legacy'] as const) {
      for (const operation of ['send', 'stream', 'get', 'cancel', 'subscribe'] as const) {
        const sends = operation === 'send' || operation === 'stream';
        const params = sends ? paramsOf(message('x'), dialect) : { id: 'x' };
        const { status, challenge, code } = await call(operation, params, { dialect, url });
        assert.deepEqual([status, code], [401, -32600], `${dialect} ${operation}`);
        assert.match(challenge!, /^Bearer realm="hopline", ApiKey realm="hopline", header="x-api-key"$/);
      }
    }
  }
  for (const line of [
    'GET /tasks',
    'GET /tasks/x',
    'POST /message:send',
    'POST /message:stream',
    'GET /acme/tasks/x',
    'GET /tasks/x/audit',
    'GET /tasks/x/audit/1.1',
  ]) {
    const { status, challenge, body } = await rest(line, {}, line.startsWith('POST') ? { message: message('x') } : undefined);
    assert.deepEqual([status, body.error.status], [401, 'UNAUTHENTICATED'], line);
    assert.match(challenge!, /^Bearer/);
  }
  assert.equal(agent.requests.length, began, 'no request reached the agent');
});

test('the card needs no credentials and names the required schemes; the SDK reads it; probes stay open [S4-4]', async () => {
  for (const url of [cluster.url, cluster.agents[0]!.url]) {
    const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as Card;
    assert.deepEqual(card.security, [{ bearer: [] }, { apiKey: [] }]);
    assert.deepEqual([card.securitySchemes!.bearer!.type, card.securitySchemes!.bearer!.scheme], ['http', 'bearer']);
    const read = AgentCard.fromJSON(card);
    assert.equal(read.securitySchemes.bearer?.scheme?.$case, 'httpAuthSecurityScheme');
    assert.equal(read.securitySchemes.apiKey?.scheme?.$case, 'apiKeySecurityScheme');
    assert.equal(read.securityRequirements.length, 2);
    for (const path of ['/livez', '/readyz', '/metrics']) assert.equal((await fetch(`${url}${path}`)).status, 200, path);
  }
  const document = (await (await fetch(`${cluster.url}/openapi.json`)).json()) as { security: unknown };
  assert.deepEqual(document.security, [{ bearer: [] }, { apiKey: [] }]);
});

test('the audit of a task agrees with the log, only for its owner and on any replica [S2-32 S2-41]', async () => {
  const { result } = await call('send', paramsOf(message('hello')), { headers: ann, replica: 0 });
  const { id } = result.task as { id: string };
  const audited = await rest(`GET /tasks/${id}/audit`, ann);
  assert.equal(audited.status, 200);
  const { state, producers, events, audit } = audited.body;
  assert.equal(state, 'completed');
  assert.deepEqual(
    producers.map(({ agent: name }: { agent: string }) => name),
    ['supervisor', 'argocd'],
  );
  assert.ok(events.some((event: { chunk?: { reason: string } }) => event.chunk?.reason !== undefined));
  assert.ok(isBalanced(audit), JSON.stringify(audit));
  const log = await openJetStreamLog({ servers: cluster.nats.url, name: 'audit' });
  assert.deepEqual(audited.body, await reportTask(log, id).finally(() => log.close()));
  const unknown = await rest(`GET /tasks/${randomUUID()}/audit`, ann);
  assert.equal(unknown.status, 404);
  for (const [name, headers] of Object.entries(others)) {
    const refused = await rest(`GET /tasks/${id}/audit`, headers);
    assert.deepEqual([refused.status, refused.body], [404, unknown.body], name);
  }
  const document = (await (await fetch(`${cluster.url}/openapi.json`)).json()) as { paths: object };
  assert.ok('/tasks/{taskId}/audit' in document.paths);
});

test('a token of the issuer or an API key is accepted; expired, third-party and invented ones are rejected [S4-4]', async () => {
  const taken: CallOptions[] = [
    { headers: ann },
    { headers: others['a key']!, dialect: '0.3' },
    { headers: ann, dialect: 'legacy' },
    { headers: ann, url: cluster.agents[0]!.url },
  ];
  for (const options of taken) {
    const { status, code } = await call('send', paramsOf(message('x'), options.dialect), options);
    assert.deepEqual([status, code], [200, undefined]);
  }
  const wrong: Headers[] = [
    await bearer({ exp: Math.floor(Date.now() / 1000) - 1 }),
    await bearer({ aud: 'another' }),
    { authorization: 'Bearer made-up' },
    { 'x-api-key': `${API_KEY}-not` },
  ];
  for (const headers of wrong) assert.equal((await call('send', paramsOf(message('x')), { headers })).status, 401);
  const client = createClient({ url: cluster.url, headers: ann });
  const states: string[] = [];
  for await (const item of client.stream('x')) {
    if ('event' in item && 'statusUpdate' in item.event) states.push(item.event.statusUpdate.status.state);
  }
  assert.equal(states.at(-1), 'TASK_STATE_COMPLETED');
  await assert.rejects(createClient({ url: cluster.url }).send('x'), { code: 'UNAUTHENTICATED' });
});

test("another caller's or tenant's task is not found, in any dialect and on any replica", {
  timeout: 120_000,
}, async () => {
  const id = await begin('hang', ann);
  for (const [who, headers] of Object.entries(others)) {
    for (const dialect of ['1.0', '0.3', 'legacy'] as const) {
      for (const replica of [0, 1]) {
        for (const operation of ['get', 'cancel', 'subscribe'] as const) {
          const { code } = await call(operation, { id }, { dialect, headers, replica });
          assert.equal(code, NOT_FOUND, `${who}: ${dialect} ${operation}`);
        }
        const resumed = { ...headers, 'last-event-id': '1.1' };
        assert.equal((await call('subscribe', { id }, { dialect, headers: resumed, replica })).code, NOT_FOUND, 'resume');
        // In the April 2025 form another caller's id is as free as any; a separate test covers that.
        if (dialect === 'legacy') continue;
        const next = paramsOf(message('x', { taskId: id }), dialect);
        for (const operation of ['send', 'stream'] as const) {
          assert.equal(
            (await call(operation, next, { dialect, headers, replica })).code,
            NOT_FOUND,
            `${who}: ${dialect} continue`,
          );
        }
      }
    }
    for (const line of [`GET /tasks/${id}`, `POST /tasks/${id}:cancel`, `GET /tasks/${id}:subscribe`]) {
      assert.equal((await rest(line, headers)).status, 404, `${who}: ${line}`);
    }
    assert.equal((await rest('POST /message:send', headers, { message: message('x', { taskId: id }) })).status, 404);
    const listed = (await rest('GET /tasks', headers)).body.tasks as { id: string }[];
    assert.ok(!listed.some(task => task.id === id), `${who}: list`);
  }
  // The task has existed all the time and is unchanged.
  const { result } = await call('get', { id }, { headers: ann });
  assert.deepEqual((result.status as JsonObject).state, 'TASK_STATE_WORKING');
  assert.deepEqual(
    (await rest('GET /tasks?status=TASK_STATE_WORKING', ann)).body.tasks.map((task: { id: string }) => task.id),
    [id],
  );
  const canceled = await call('cancel', { id }, { headers: ann });
  assert.equal((canceled.result.status as JsonObject).state, 'TASK_STATE_CANCELED');
});

test("responses for another caller's task equal those for an unknown task in status, headers and body, except the id", async () => {
  const [mine, unknown] = [await begin('hang', ann), randomUUID()];
  const headers = others['another caller']!;
  const answerOf = async (response: Response, id: string) => {
    const changing = ['date', 'content-length', 'keep-alive'];
    const kept = [...response.headers].filter(([name]) => !changing.includes(name));
    return { status: response.status, kept, body: (await response.text()).replaceAll(id, 'ID') };
  };
  const version: Headers = { 'a2a-version': '1.0' };
  for (const line of [
    'GET /tasks/ID',
    'POST /tasks/ID:cancel',
    'GET /tasks/ID:subscribe',
    'GET /acme/tasks/ID',
    'GET /umbrella/tasks/ID',
  ]) {
    const [method = '', path = ''] = line.split(' ');
    const at = async (id: string) =>
      answerOf(await fetch(cluster.url + path.replace('ID', id), { method, headers: { ...headers, ...version } }), id);
    assert.deepEqual(await at(mine), await at(unknown), line);
  }
  for (const dialect of ['1.0', '0.3'] as const) {
    for (const operation of ['get', 'cancel', 'subscribe', 'send', 'stream'] as const) {
      const method = DIALECTS[dialect].methods[operation]!;
      const sent = message('x');
      const at = async (id: string) => {
        const params =
          operation === 'send' || operation === 'stream' ? paramsOf({ ...sent, ...{ taskId: id } }, dialect) : { id };
        return answerOf(await rpc(cluster.url, { dialect, method, params, headers }), id);
      };
      assert.deepEqual(await at(mine), await at(unknown), `${dialect} ${operation}`);
    }
  }
  assert.equal((await call('cancel', { id: mine }, { headers: ann })).code, undefined);
});

test('a task that waits for an answer accepts it only from its caller', async () => {
  const { result } = await call('send', paramsOf(message('ask')), { headers: ann });
  const { id: taskId, status } = result.task as { id: string; status: { state: string } };
  assert.equal(status.state, 'TASK_STATE_INPUT_REQUIRED');
  for (const headers of Object.values(others)) {
    assert.equal((await call('send', paramsOf(message('mine', { taskId })), { headers })).code, NOT_FOUND);
  }
  const answered = await call('send', paramsOf(message('the first', { taskId })), { headers: ann });
  assert.equal((answered.result.task as { status: { state: string } }).status.state, 'TASK_STATE_COMPLETED');
});

test('a tenant in the path or the params that differs from the credentials’ tenant is not found', async () => {
  const id = await begin('x', ann);
  assert.equal((await rest(`GET /acme/tasks/${id}`, ann)).status, 200);
  assert.equal((await rest(`GET /umbrella/tasks/${id}`, ann)).status, 404);
  assert.equal((await call('get', { id, tenant: 'acme' }, { headers: ann })).status, 200);
  assert.equal((await call('get', { id, tenant: 'umbrella' }, { headers: ann })).code, NOT_FOUND);
  const otherTenant = others['another tenant']!;
  assert.equal((await rest(`GET /acme/tasks/${id}`, otherTenant)).status, 404);
  assert.equal(
    (await rest('POST /acme/message:send', otherTenant, { message: message('x') })).status,
    404,
    'and no task can be started there',
  );
  assert.equal((await rest('GET /acme/tasks', others['no tenant']!)).status, 404);
});

test('two callers with the same message id and context id get two tasks in two contexts [S1-10]', async () => {
  const contextId = `context-${randomUUID()}`;
  const sent = message(`x ${contextId}`, { contextId });
  const ids = new Set<string>();
  for (const headers of [ann, ann, ...Object.values(others)]) {
    const { result } = await call('send', paramsOf(sent), { headers });
    ids.add((result.task as { id: string }).id);
  }
  assert.equal(ids.size, 1 + Object.keys(others).length);
  const listed = await rest(`GET /tasks?contextId=${contextId}`, ann);
  assert.equal(listed.body.totalSize, 1);
  const contexts = agent.requests
    .filter(({ text }) => text === sent.parts[0]!.text)
    .map(({ params }) => (params.message as JsonObject).contextId);
  assert.equal(contexts.length, ids.size);
  assert.equal(new Set(contexts).size, ids.size, 'the agent gets a context per caller');
});

test('a task id chosen by one caller is free for all others, who cannot read that task [C-9]', async () => {
  const params = ask(`mine-${randomUUID()}`, 'x');
  const first = await call('send', params, { dialect: 'legacy', headers: ann });
  assert.equal(first.result.id, params.id);
  const contexts = new Set([first.result.sessionId]);
  for (const headers of Object.values(others)) {
    const unknown = await call('get', { id: params.id }, { dialect: 'legacy', headers });
    assert.equal(unknown.code, NOT_FOUND);
    const sent = await call('send', params, { dialect: 'legacy', headers, replica: 0 });
    const read = await call('get', { id: params.id }, { dialect: 'legacy', headers, replica: 1 });
    assert.deepEqual([sent.result.id, read.result.id], [params.id, params.id]);
    assert.equal(read.result.sessionId, sent.result.sessionId);
    contexts.add(sent.result.sessionId);
  }
  assert.equal(contexts.size, 1 + Object.keys(others).length, 'one task of each caller');
});

test('identity comes from the credentials, not from claims in a message [S1-15]', async () => {
  const id = await begin('x', ann);
  const claims = { 'hopline.owner': { subject: 'ann', tenant: 'acme' }, 'hopline.subject': 'ann', tenant: 'acme', owner: 'ann' };
  const headers = { ...others['another caller']!, 'x-tenant': 'acme', 'x-subject': 'ann', 'x-forwarded-user': 'ann' };
  const sent = message('x', { taskId: id, metadata: claims });
  assert.equal((await call('send', { ...paramsOf(sent), metadata: claims }, { headers })).code, NOT_FOUND);
  const began = await begin('x', headers, { metadata: claims });
  assert.equal((await call('get', { id: began }, { headers: ann })).code, NOT_FOUND);
  assert.equal((await call('get', { id: began }, { headers: others['another caller']! })).status, 200);
});

test('a stream continues after its token expires; the next request with it is rejected', { timeout: 120_000 }, async () => {
  const exp = Math.floor(Date.now() / 1000) + 4;
  const headers = await bearer({ tenant: 'acme', exp });
  const seen: { text: string; late: boolean }[] = [];
  for await (const { event } of frames(cluster.url, {
    dialect: '1.0',
    method: 'SendStreamingMessage',
    params: paramsOf(message('slow')),
    headers,
  })) {
    if (!('artifactUpdate' in event)) continue;
    seen.push({
      text: event.artifactUpdate.artifact.parts.map(part => part.text ?? '').join(''),
      late: Date.now() / 1000 > exp + 1,
    });
  }
  assert.ok(
    seen.some(({ late, text }) => late && text !== ''),
    'text was streamed after the token expired',
  );
  assert.match(seen.map(({ text }) => text).join(''), /58 59 done/);
  const { status } = await call('send', paramsOf(message('x')), { headers });
  assert.equal(status, 401);
});

test('a server on a public address starts only with authentication, or with the setting that allows access without it', {
  timeout: 120_000,
}, async t => {
  const env = { NATS_URL: cluster.nats.url, HOPLINE_HOST: '0.0.0.0' };
  const process = async (service: string, more: Headers) => {
    const started = new ServiceProcess({ service, instance: `${service}-public`, env: { ...env, ...more } }, await freePort());
    t.after(() => started.kill());
    return started;
  };
  const entry = { HOPLINE_AGENT: JSON.stringify({ name: 'public', adapter: 'a2a', url: agent.url }) };
  for (const [service, more] of [
    ['ingress', {}],
    ['sub-agent', entry],
  ] as const) {
    const refused = await process(service, more);
    await assert.rejects(refused.start(), /HOPLINE_HOST is not loopback and authentication is off/);
    const allowed = await process(service, { ...more, HOPLINE_AUTH_NONE_ON_PUBLIC: 'true' });
    await allowed.start();
    const asking = await process(service, { ...more, ...issuer.env });
    await asking.start();
  }
  const probesOnly = await process('supervisor', {});
  await probesOnly.start();
});
