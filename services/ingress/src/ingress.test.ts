import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { A2AError, type CardReport } from '@hopline/a2a';
import { LIMITS } from '@hopline/a2a-server';
import { cardReport, DRAFT_EXTENSION_URI } from '@hopline/agent-card';
import { CardSigner } from '@hopline/agent-card/signing';
import { verifyAgentCard } from '@hopline/agent-card/verify';
import type { AgentInput } from '@hopline/events';
import { AllowedHosts, createHealth } from '@hopline/lifecycle';
import { type Log, LogUnavailable } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { encodeProgress, findResumePoint, readTaskFile } from '@hopline/task-file';
import { createLogger } from '@hopline/telemetry';
import { webhookRules } from '@hopline/webhook-guard';
import { collect } from '../../../test/kit/collect.ts';
import { NO_METRICS } from '../../../test/kit/no-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import { AUDIT_FACT_BYTES_MAX, AUDIT_INPUT_BYTES_MAX, AUDIT_RECORDS_MAX } from './audit-task.ts';
import { createIngress, type IngressDeps } from './ingress.ts';
import { CARD_TENANTS_MAX, type IngressCardOptions } from './ingress-card.ts';

const CARD: IngressCardOptions = {
  name: 'Platform Engineer',
  description: 'd',
  version: '1.2.3',
  skills: 'public',
  extended: true,
  streaming: true,
  push: false,
};

async function openIngress(t: TestContext, deps: Partial<IngressDeps> = {}) {
  const { publicUrl, card, auth, tenants, grpc, cors, defaultAgent, limits = {} } = deps;
  const log = createMemoryLog();
  await log.agents.put('argocd', {
    name: 'argocd',
    description: 'ArgoCD',
    url: '',
    skills: [{ id: 'version', name: 'Version', description: 'Shows it', tags: [] }],
    heartbeat: 1,
  });
  const health = createHealth();
  health.started([{ name: 'log', check: () => log.check() }]);
  const ingress = await createIngress({
    log,
    profile: 'caipe',
    card: { ...CARD, ...card },
    ...(auth && { auth }),
    ...(tenants && { tenants }),
    cors,
    defaultAgent,
    publicUrl,
    grpc,
    webhooks: webhookRules({ HOPLINE_WEBHOOK_ALLOW: undefined, HOPLINE_WEBHOOK_HTTP: false }),
    limits,
    probes: { health, metricsText: async () => '# none\n', loopLagMsMax: 60_000, hosts: new AllowedHosts() },
    metrics: NO_METRICS,
    logger: createLogger({ service: 'ingress', instance: 'test', level: 'silent' }),
  });
  const url = await ingress.listen('127.0.0.1', 0);
  t.after(() => ingress.close());
  return { log, url };
}

test('the card has the name, the address and the skills of the agents [S3-1 S4-3]', async t => {
  const { url } = await openIngress(t);
  const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as Record<string, unknown>;
  assert.deepEqual([card.name, card.version, card.url], ['Platform Engineer', '1.2.3', `${url}/`]);
  assert.deepEqual(
    (card.skills as { id: string }[]).map(skill => skill.id),
    ['version'],
  );
});

type Card = {
  capabilities: Record<string, unknown> & {
    extensions?: { uri: string; params: { agents?: { name: string; health: string }[] } }[];
  };
  skills: { id: string }[];
  supportedInterfaces: { protocolVersion: string; tenant?: string }[];
  security?: unknown;
  securityRequirements?: unknown;
  securitySchemes?: Record<string, object>;
};

const cardAt = async (url: string) => (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as Card;

async function ask(url: string, method: string, params: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return (await response.json()) as { result?: Card; error?: { code: number } };
}

const auth: NonNullable<IngressDeps['auth']> = {
  authenticate: async ({ headers }) => {
    if (headers.authorization === 'Bearer good') return { subject: 'ann' };
    throw new A2AError('UNAUTHENTICATED');
  },
  card: {
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'bearer' } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    security: [{ bearer: [] }],
  },
  checks: [],
  close: () => {},
};
const good = { authorization: 'Bearer good' };

test('tenants are on the card only without authentication, after the interfaces without a tenant and before these are repeated [S4-1]', async t => {
  const { url } = await openIngress(t, { tenants: ['acme'] });
  const { supportedInterfaces } = await cardAt(url);
  assert.deepEqual(
    supportedInterfaces.map(one => `${one.protocolVersion} ${one.tenant ?? ''}`),
    ['1.0 ', '1.0 ', '1.0 acme', '1.0 acme', '1.0 ', '1.0 ', '0.3 ', '0.3 '],
  );
  const many = await openIngress(t, { tenants: Array.from({ length: CARD_TENANTS_MAX + 1 }, (_, n) => `t${n}`) });
  const named = new Set((await cardAt(many.url)).supportedInterfaces.flatMap(({ tenant }) => tenant ?? []));
  assert.deepEqual([named.size, named.has(`t${CARD_TENANTS_MAX}`)], [CARD_TENANTS_MAX, false]);
});

test('with streaming off, the card does not declare it and a stream is refused [S3-2 S4-2]', async t => {
  const on = await openIngress(t);
  const card = await cardAt(on.url);
  assert.deepEqual([card.capabilities.streaming, card.capabilities.extensions?.length], [true, 2]);
  assert.equal((await ask(on.url, 'SubscribeToTask', { id: 'x' })).error?.code, -32001);
  const off = await openIngress(t, { card: { ...CARD, streaming: false } });
  const without = await cardAt(off.url);
  assert.deepEqual(
    [without.capabilities.streaming, without.capabilities.extensions?.map(({ uri }) => uri)],
    [false, [DRAFT_EXTENSION_URI]],
  );
  assert.equal((await ask(off.url, 'SubscribeToTask', { id: 'x' })).error?.code, -32004);
});

test('the extended card needs authentication and can be switched off [S4-2]', async t => {
  const open = await openIngress(t);
  assert.equal((await cardAt(open.url)).capabilities.extendedAgentCard, false);
  assert.equal((await ask(open.url, 'GetExtendedAgentCard', {})).error?.code, -32004);
  const none = await openIngress(t, { auth, card: { ...CARD, extended: false } });
  assert.equal((await cardAt(none.url)).capabilities.extendedAgentCard, false);
  assert.equal((await ask(none.url, 'GetExtendedAgentCard', {}, good)).error?.code, -32004);
  const closed = await openIngress(t, { auth, tenants: ['acme'], card: { ...CARD, skills: 'callers' } });
  const card = await cardAt(closed.url);
  assert.equal(card.capabilities.extendedAgentCard, true);
  assert.deepEqual(
    card.skills.map(({ id }) => id),
    ['chat'],
  );
  assert.deepEqual(card.security, [{ bearer: [] }]);
  assert.deepEqual(
    card.supportedInterfaces.map(one => one.tenant),
    [undefined, undefined, undefined, undefined],
  );
  assert.ok((await ask(closed.url, 'GetExtendedAgentCard', {})).error);
  const { result } = await ask(closed.url, 'GetExtendedAgentCard', {}, good);
  assert.deepEqual(
    result?.skills.map(({ id }) => id),
    ['version'],
  );
  const texts = result?.capabilities.extensions?.flatMap(({ params }) => params.agents ?? []);
  assert.deepEqual(
    texts?.map(({ name, health }) => [name, health]),
    [['argocd', 'live']],
  );
  assert.doesNotMatch(JSON.stringify(result), /"heartbeat"/);
});

test('the extended card has the version of its reader, each signed as a whole [S4-2]', async t => {
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signer = await CardSigner.open({ key: key.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string });
  const keyOf = (async () => key.publicKey.export({ format: 'jwk' })) as Parameters<typeof verifyAgentCard>[1];
  const { url } = await openIngress(t, { auth, card: { ...CARD, signer } });
  const of1 = (await ask(url, 'GetExtendedAgentCard', {}, good)).result!;
  const of03 = (await ask(url, 'agent/getAuthenticatedExtendedCard', {}, { ...good, 'a2a-version': '0.3' })).result!;
  const members = [
    'additionalInterfaces',
    'preferredTransport',
    'protocolVersion',
    'security',
    'supportsAuthenticatedExtendedCard',
    'url',
  ];
  const only03 = Object.keys(of03).filter(name => !(name in of1));
  assert.deepEqual(only03.sort(), members);
  assert.deepEqual(
    [of1, of03].map(card => Object.values(card.securitySchemes!).map(scheme => Object.keys(scheme))),
    [[['httpAuthSecurityScheme']], [['type', 'scheme', 'httpAuthSecurityScheme']]],
  );
  assert.deepEqual(of1.securityRequirements, [{ schemes: { bearer: { list: [] } } }]);
  assert.equal('stateTransitionHistory' in of1.capabilities, false);
  for (const card of [of1, of03]) {
    assert.equal((await verifyAgentCard(card, keyOf)).whole, true);
  }
});

test('the card has the public address when one is set [C-27]', async t => {
  const { url } = await openIngress(t, { publicUrl: 'https://agents.example/a2a' });
  const card = (await (await fetch(`${url}/.well-known/agent.json`)).json()) as {
    url: string;
    supportedInterfaces: { url: string }[];
  };
  assert.deepEqual([card.url, card.supportedInterfaces[0]?.url], ['https://agents.example/a2a', 'https://agents.example/a2a']);
});

test('push notifications are on the card exactly when they are accepted [S4-2 S4-23]', async t => {
  for (const push of [false, true]) {
    const { url } = await openIngress(t, { card: { ...CARD, push } });
    const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as { capabilities: Record<string, boolean> };
    assert.equal(card.capabilities.pushNotifications, push);
    const response = await fetch(`${url}/tasks/x/pushNotificationConfigs`, { headers: { 'a2a-version': '1.0' } });
    const { error } = (await response.json()) as { error: { details: { reason: string }[] } };
    assert.equal(error.details[0]?.reason, push ? 'TASK_NOT_FOUND' : 'PUSH_NOTIFICATION_NOT_SUPPORTED');
  }
});

test('output modes that the card does not list are refused [S4-38]', async t => {
  const { url } = await openIngress(t);
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const body = { id: 1, method: 'SendMessage', params: { message, configuration: { acceptedOutputModes: ['video/mp4'] } } };
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(((await response.json()) as { error: { code: number } }).error.code, -32005);
});

test('the card lists gRPC when it has a port, at an address for clients [S4-2]', async t => {
  type Card = { supportedInterfaces: { url: string; protocolBinding: string }[] };
  const offeredAt = async (url: string) => {
    const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as Card;
    return card.supportedInterfaces.filter(one => one.protocolBinding === 'GRPC').map(one => one.url);
  };
  assert.deepEqual(await offeredAt((await openIngress(t)).url), []);
  const [own = ''] = await offeredAt((await openIngress(t, { grpc: { port: 0, publicUrl: undefined } })).url);
  const port = Number(/^127\.0\.0\.1:(\d+)$/.exec(own)?.[1]);
  await assert.rejects(openIngress(t, { grpc: { port, publicUrl: undefined } }), { code: 'EADDRINUSE' });
  const grpc = { port: 0, publicUrl: 'agents.example:443' };
  assert.deepEqual(await offeredAt((await openIngress(t, { grpc })).url), [grpc.publicUrl, grpc.publicUrl]);
});

test('A2A and probes share a server, and unknown paths get JSON', async t => {
  const { url } = await openIngress(t);
  const statuses = await Promise.all(
    ['/livez', '/readyz', '/metrics', '/nothing'].map(async path => (await fetch(`${url}${path}`)).status),
  );
  assert.deepEqual(statuses, [200, 200, 200, 404]);
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"id":1,"method":"tasks/get","params":{"id":"x"}}',
  });
  assert.equal(((await response.json()) as { error: { code: number } }).error.code, -32001);
});

type Agents = { agents: { name: string; default: boolean; lastSeenAt: string }[] };

async function agentsAt(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/agents`, { headers });
  return { response, body: (await response.json()) as Agents & { error?: { status: string } } };
}

test('GET /agents lists the agents with their state and the default agent, but no addresses', async t => {
  const { log, url } = await openIngress(t);
  const heartbeat = Date.parse('2026-01-02T03:04:05.678Z');
  const skills = [{ id: 'a', name: 'A', description: 'secret detail', tags: ['t'] }];
  const report = cardReport({ name: 'The guide', url: 'http://secret/' });
  await log.agents.put('guide', {
    name: 'guide',
    description: 'Guides',
    url: 'http://secret/',
    skills,
    default: true,
    fault: 'ECONNREFUSED',
    failing: 'http_500',
    card: { ...report, secret: 'x', modes: 7 } as CardReport,
    heartbeat,
  });
  const isListed = async () => (await agentsAt(url)).body.agents.length === 2;
  while (!(await isListed()));
  const { response, body } = await agentsAt(url);
  assert.deepEqual(
    [response.status, response.headers.get('content-type'), response.headers.get('cache-control')],
    [200, 'application/json', 'no-store'],
  );
  assert.deepEqual(body.agents, [
    {
      name: 'argocd',
      description: 'ArgoCD',
      skills: [{ id: 'version', name: 'Version' }],
      state: 'live',
      default: false,
      lastSeenAt: '1970-01-01T00:00:00.001Z',
    },
    {
      name: 'guide',
      description: 'Guides',
      skills: [{ id: 'a', name: 'A' }],
      state: 'live',
      fault: 'ECONNREFUSED',
      failing: 'http_500',
      card: report,
      default: true,
      lastSeenAt: '2026-01-02T03:04:05.678Z',
    },
  ]);
  const configured = await openIngress(t, { defaultAgent: 'argocd' });
  assert.equal((await agentsAt(configured.url)).body.agents[0]?.default, true);
});

test('GET /agents lists an agent whose entry has a card in an unknown form, without the card', async t => {
  const { log, url } = await openIngress(t);
  const entry = { name: 'later', description: '', url: '', skills: [], heartbeat: 1 };
  await log.agents.put('later.1', { ...entry, card: { findings: [{ path: 'x' }] } as unknown as CardReport });
  await until(async () => (await agentsAt(url)).body.agents.some(({ name }) => name === 'later'));
  const { agents } = (await agentsAt(url)).body;
  assert.equal('card' in agents.find(({ name }) => name === 'later')!, false);
});

test('GET /agents needs the credentials of an operation, and answers pages of the allowed origins', async t => {
  const { url } = await openIngress(t, { auth, cors: { origins: ['https://page.example'], requestHeaders: [] } });
  const stranger = await agentsAt(url);
  assert.deepEqual([stranger.response.status, stranger.body.error?.status], [401, 'UNAUTHENTICATED']);
  const origin = 'https://page.example';
  const caller = await agentsAt(url, { ...good, origin });
  assert.equal(caller.response.status, 200);
  assert.equal(caller.response.headers.get('access-control-allow-origin'), origin);
  assert.equal(
    (await agentsAt(url, { ...good, origin: 'https://other' })).response.headers.get('access-control-allow-origin'),
    null,
  );
});

test('GET /agents returns 503 while the log is unavailable', async t => {
  const { log, url } = await openIngress(t);
  log.check = async () => Promise.reject(new LogUnavailable());
  const { response, body } = await agentsAt(url);
  assert.deepEqual([response.status, response.headers.get('retry-after'), body.error?.status], [503, '1', 'UNAVAILABLE']);
});

test('the OpenAPI document has the read side of Durable Streams', async t => {
  const { url } = await openIngress(t);
  type Operation = { operationId: string; parameters: { name: string; in: string }[]; responses: Record<string, unknown> };
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, Record<string, Operation>> };
  const { get, head } = paths['/tasks/{taskId}/stream']!;
  assert.deepEqual([get?.operationId, head?.operationId], ['ReadTaskStream', 'ReadTaskStreamTail']);
  assert.deepEqual(
    get?.parameters.map(({ name, in: place }) => `${place} ${name}`),
    ['path taskId', 'query offset', 'query live', 'query cursor'],
  );
  for (const status of ['200', '204', '304', '404', '410', '429']) assert.ok(status in get!.responses, status);
});

test('the OpenAPI document has the list of agents', async t => {
  const { url } = await openIngress(t);
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
    paths: Record<string, { get: { operationId: string; parameters: unknown[] } }>;
  };
  assert.deepEqual([paths['/agents']?.get.operationId, paths['/agents']?.get.parameters], ['ListAgents', []]);
});

const TASK = 'task-1';
const SECRET = 'what is the password';
const ANSWER = 'it is 1234';

/** An ingress with one task of Ann's. `audit` reads as the given caller. */
async function openAudited(t: TestContext, limits: IngressDeps['limits'] = {}) {
  const authenticate: typeof auth.authenticate = async ({ headers: { caller } }) => {
    if (caller === undefined) throw new A2AError('UNAUTHENTICATED');
    return { subject: String(caller) };
  };
  const { log, url } = await openIngress(t, { auth: { ...auth, authenticate }, limits });
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: SECRET }] };
  const owner = { subject: 'ann' };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe', owner } as const;
  await log.inputs.append(TASK, { v: 1, at: 1, from: 'client', input }, { id: '1' });
  const from = supervisor();
  const open: Exclude<AgentInput, { kind: 'text' }> = { kind: 'open', lane: 'a', artifact: { name: 'partial_result' } };
  const inputs: AgentInput[] = [open, { kind: 'text', lane: 'a', tokens: [ANSWER] }];
  const { seq } = await log.inputs.append(TASK, { v: 1, at: 5, from, n: 1, inputs }, { id: '2' });
  const chunk = { firstSeq: seq, lastSeq: seq, count: 1, n: 2, reason: 'first', heldMs: 0, firstAt: 5, lastAt: 5 };
  const task = new StoredScenario(log.facts, TASK, () => 7)
    .when({ kind: 'client', taskId: TASK, input })
    .input(from, open)
    .when({ kind: 'run', from, lane: 'a', text: ANSWER, last: false, n: 2, chunk });
  task.aggregate = { ...task.aggregate!, foldedSeq: seq };
  await task.store();
  const audit = async (caller?: string, taskId = TASK, event = '') => {
    const headers = caller === undefined ? {} : { caller };
    const response = await fetch(`${url}/tasks/${taskId}/audit${event}`, { headers });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
  const exported = async (caller?: string, query = '', taskId = TASK) => {
    const headers = caller === undefined ? {} : { caller };
    const response = await fetch(`${url}/tasks/${taskId}/export${query}`, { headers });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
  return { log, url, task, audit, exported };
}

test('the owner of a task reads where its time went and whether anything was lost, without any text [S2-32 S2-41 S4-43]', async t => {
  const { audit } = await openAudited(t);
  const { status, headers, body } = await audit('ann');
  assert.deepEqual([status, headers.get('content-type'), headers.get('cache-control')], [200, 'application/json', 'no-store']);
  const { taskId, state, producers, events, audit: audited } = JSON.parse(body);
  assert.deepEqual([taskId, state], [TASK, 'submitted']);
  assert.deepEqual([producers[0].id, producers[0].tokens, events.at(-1).chunk.tokens], ['supervisor', 1, 1]);
  assert.deepEqual([audited.unaccounted.text, audited.differing, audited.incomplete], [0, [], false]);
  assert.doesNotMatch(body, /password|1234/);
});

test('if retention has removed the beginning of a task, the audit uses the remaining records', async t => {
  const { audit, log, task } = await openAudited(t);
  const answer = async () => {
    const { status, body } = await audit('ann');
    const { partial, events, audit: audited } = JSON.parse(body);
    return [status, partial, events[0].generation, audited.incomplete];
  };
  assert.deepEqual(await answer(), [200, undefined, 1, false]);
  const { seq } = (await log.facts.last(TASK))!;
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  log.expire('facts', TASK, seq + 1);
  assert.deepEqual(await answer(), [200, ['facts'], 3, true]);
});

test('the audit of another owner’s task gets the same error as the audit of an unknown task', async t => {
  const { audit } = await openAudited(t);
  const answers = await Promise.all([audit('bob'), audit('ann', 'unknown'), audit('ann', 'no*id')]);
  for (const { status, body } of answers) assert.deepEqual([status, body], [404, answers[0]!.body]);
  assert.equal((await audit()).status, 401);
});

test('the owner of a task reads where one event comes from; a wrong cursor gets 400, and another owner’s task counts as unknown [S4-43]', async t => {
  const { audit, log } = await openAudited(t);
  const { status, body } = await audit('ann', TASK, '/2.1');
  assert.equal(status, 200);
  const { generation, kind, inputs, producer, chunk } = JSON.parse(body);
  assert.deepEqual([generation, kind, inputs.length, producer.agent, chunk.reason], [2, 'artifact', 1, 'supervisor', 'first']);
  assert.doesNotMatch(body, /password|1234/);
  for (const [event, reason] of [
    ['/3.1', /no event of generation 3/],
    ['/two', /form GENERATION\.SEQUENCE/],
  ] as const) {
    const refused = await audit('ann', TASK, event);
    assert.equal(refused.status, 400);
    assert.match(refused.body, reason);
  }
  const unknown = await audit('ann', 'unknown', '/2.1');
  const other = await audit('bob', TASK, '/2.1');
  assert.deepEqual([other.status, other.body, (await audit(undefined, TASK, '/2.1')).status], [404, unknown.body, 401]);
  log.facts.last = () => Promise.reject(new LogUnavailable('gone'));
  assert.equal((await audit('ann', TASK, '/2.1')).status, 503);
});

test('an audit gets 503 with Retry-After while the log is away', async t => {
  const { audit, log } = await openAudited(t);
  log.facts.last = () => Promise.reject(new LogUnavailable('gone'));
  const { status, headers } = await audit('ann');
  assert.deepEqual([status, headers.get('retry-after')], [503, '1']);
});

test(`a task of ${AUDIT_RECORDS_MAX} records, or ${AUDIT_INPUT_BYTES_MAX} bytes of inputs, is audited; one more gets 400`, async t => {
  const { audit, log } = await openAudited(t);
  // The task has one record of facts.
  let [count, bytes] = [AUDIT_RECORDS_MAX - 1, 10];
  log.inputs.read = async function* () {
    const record = { v: 1, at: 1, from: 'relay', input: { kind: 'timeout', request: 1 } } as const;
    for (let index = 0; index < count; index++) yield { seq: index, taskId: TASK, record, writer: 'relay', bytes, storedAt: 1 };
  };
  assert.equal((await audit('ann')).status, 200);
  count += 1;
  const tooLong = await audit('ann');
  assert.equal(tooLong.status, 400);
  assert.match(tooLong.body, /more than 20000 records/);
  [count, bytes] = [1, AUDIT_INPUT_BYTES_MAX];
  assert.equal((await audit('ann')).status, 200);
  bytes += 1;
  assert.match((await audit('ann')).body, /inputs of the task have more than 33554432 bytes/);
});

test(`a task with ${AUDIT_FACT_BYTES_MAX} bytes of facts is audited; with one byte more it gets 400 before the rest is read`, async t => {
  const { audit, log } = await openAudited(t);
  const records = await collect(log.facts.read(TASK, 1));
  let [bytes, isRestRead] = [AUDIT_FACT_BYTES_MAX, false];
  log.facts.read = async function* () {
    for (const [index, record] of records.entries()) yield { ...record, bytes: index === 0 ? bytes : 0 };
    isRestRead = true;
  };
  for (const event of ['', '/2.1']) {
    bytes = AUDIT_FACT_BYTES_MAX;
    assert.equal((await audit('ann', TASK, event)).status, 200);
    bytes += 1;
    isRestRead = false;
    const refused = await audit('ann', TASK, event);
    assert.deepEqual([refused.status, isRestRead], [400, false]);
    assert.match(refused.body, /facts of the task have more than 33554432 bytes/);
  }
});

/** Reads of inputs wait for `go`. `started` resolves with the `nth` read. */
function holdReads({ inputs }: Log, nth: number) {
  const go = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const { read } = inputs;
  let reading = 0;
  inputs.read = async function* (taskId) {
    reading += 1;
    if (reading === nth) started.resolve();
    await go.promise;
    yield* read.call(inputs, taskId);
  };
  return { go, started };
}

test('the bytes that an audit reads count as sent to its caller: beyond the budget the next one gets 429', async t => {
  const { audit } = await openAudited(t, { ownerSentBytesPerSecond: 1, ownerSentBytesBurst: 1_000 });
  const { status, body } = await audit('ann', TASK, '/2.1');
  assert.equal(status, 200);
  assert.ok(body.length < 1_000, 'the answer alone is within the budget');
  assert.equal((await audit('ann', TASK, '/2.1')).status, 429);
});

test('the owner of a task exports it as a file; an interrupted export continues to the same bytes', async t => {
  const { exported } = await openAudited(t);
  const { status, headers, body } = await exported('ann');
  assert.deepEqual(
    [status, headers.get('content-type'), headers.get('cache-control')],
    [200, 'application/jsonl; charset=utf-8', 'no-store'],
  );
  const kinds: string[] = [];
  for await (const { kind } of readTaskFile([Buffer.from(body)])) kinds.push(kind);
  assert.deepEqual(kinds, ['header', 'input', 'input', 'facts', 'end']);
  assert.ok(body.includes(SECRET) && body.includes(ANSWER));
  const cut = body.split('\n').slice(0, 3).join('\n').concat('\n');
  const { open } = await findResumePoint([Buffer.from(cut)]);
  const rest = await exported('ann', `?after=${encodeProgress(open!.progress)}`);
  const withoutTime = (text: string) => text.replace(/"storedAt":\d+/g, '');
  assert.equal(withoutTime(cut + rest.body), withoutTime(body));
});

test('an export contains no webhooks, no credentials and no records that only services read', async t => {
  const { exported, log } = await openAudited(t);
  const planted = 'planted-secret';
  await log.pushConfigs.put(`${TASK}.aWQ`, {
    taskId: TASK,
    id: 'id',
    url: `https://example.com/${planted}`,
    token: planted,
    authentication: { scheme: 'Bearer', credentials: planted },
    dialect: '1.0',
    owner: { subject: 'ann' },
    after: 0,
  });
  const step: AgentInput = { kind: 'step', step: '1', payload: planted };
  const ended: AgentInput = {
    kind: 'ended',
    call: 'c',
    state: 'TASK_STATE_COMPLETED',
    withheldText: planted,
    resume: planted,
    reason: planted,
  };
  await log.inputs.append(TASK, { v: 1, at: 9, from: supervisor(), n: 3, inputs: [step, ended] }, { id: '9' });
  const { body } = await exported('ann');
  assert.ok(body.includes('"step"') && !body.includes(planted));
});

test('the export of another owner’s task gets the same error as the export of an unknown task', async t => {
  const { exported } = await openAudited(t);
  const answers = await Promise.all([exported('bob'), exported('ann', '', 'unknown'), exported('ann', '', 'no*id')]);
  for (const { status, body } of answers) assert.deepEqual([status, body], [404, answers[0]!.body]);
  assert.equal((await exported()).status, 401);
});

test('an export with an unknown query gets 400', async t => {
  const { exported } = await openAudited(t);
  for (const query of ['?records=all', '?records=facts,facts', '?after=x', '?after=e30', '?records=facts&records=inputs'])
    assert.equal((await exported('ann', query)).status, 400, query);
  assert.equal((await exported('ann', '?records=facts')).status, 200);
});

test('an export gets 429 with Retry-After while another export of its caller is running, and 503 while the log is away', async t => {
  const { exported, log } = await openAudited(t);
  const { go, started } = holdReads(log, 1);
  const running = exported('ann');
  await started.promise;
  const refused = await exported('ann');
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '1']);
  go.resolve();
  assert.equal((await running).status, 200);
  log.facts.last = () => Promise.reject(new LogUnavailable('gone'));
  assert.equal((await exported('ann')).status, 503);
});

test('a client that leaves in the middle of an export frees its slot', async t => {
  const { exported, log, url } = await openAudited(t);
  const { read } = log.inputs;
  const left = Promise.withResolvers<void>();
  log.inputs.read = async function* () {
    const record = { v: 1, at: 1, from: 'relay', input: { kind: 'timeout', request: 1 } } as const;
    try {
      for (let seq = 1; ; seq += 1) {
        yield { seq, taskId: TASK, record, writer: 'relay', bytes: 1, storedAt: 1 };
        await new Promise(resolve => setTimeout(resolve, 1));
      }
    } finally {
      if (leaving) left.resolve();
    }
  };
  let leaving = false;
  const leave = new AbortController();
  const response = await fetch(`${url}/tasks/${TASK}/export`, { headers: { caller: 'ann' }, signal: leave.signal });
  await response.body!.getReader().read();
  assert.equal((await exported('ann')).status, 429);
  leaving = true;
  leave.abort();
  await left.promise;
  log.inputs.read = read;
  await until(async () => (await exported('ann')).status === 200, 'the slot of the export is free again');
});

const chatOf = (text: string) => ({ model: 'argocd', messages: [{ role: 'user', content: text }] });

async function postJson(url: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const { error } = (await response.json()) as { error: { code: unknown; message: string; type?: string; param?: string } };
  return { status: response.status, error, headers: response.headers };
}

test('the fronts have the callers of A2A, and OpenAI its form of errors [S4-1]', async t => {
  const { url } = await openIngress(t, { auth });
  const none = await postJson(`${url}/v1/chat/completions`, chatOf('hello'));
  assert.deepEqual([none.status, none.error.code, none.error.type], [401, 'invalid_api_key', 'invalid_request_error']);
  // Without credentials nothing shows which agents exist.
  assert.equal((await postJson(`${url}/v1/chat/completions`, { ...chatOf('x'), model: 'none' })).status, 401);
  assert.equal((await fetch(`${url}/v1/models`)).status, 401);
  assert.equal((await fetch(`${url}/v1/models/argocd`)).status, 401);
  const models = (await (await fetch(`${url}/v1/models`, { headers: good })).json()) as { data: { id: string }[] };
  assert.deepEqual(
    models.data.map(({ id }) => id),
    ['hopline', 'argocd'],
  );
  const run = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'hello' }] };
  assert.equal((await postJson(`${url}/agui`, run)).status, 401);
  const gone = await fetch(`${url}/v1/responses/resp_01b8dac5-b9dd-7000-8000-1c0700000007`, { headers: good });
  assert.deepEqual([gone.status, ((await gone.json()) as { error: { code: string } }).error.code], [404, 'response_not_found']);
});

test('the fronts refuse invalid bodies before anything is stored', async t => {
  const { url } = await openIngress(t);
  const broken = await postJson(`${url}/v1/responses`, '{');
  assert.deepEqual([broken.status, broken.error.type], [400, 'invalid_request_error']);
  const large = await postJson(`${url}/v1/responses`, chatOf('x'.repeat(LIMITS.bodyBytesMax)));
  assert.deepEqual([large.status, large.error.code], [413, 'request_too_large']);
  const form = await fetch(`${url}/v1/responses`, { method: 'POST', body: new URLSearchParams({ a: 'b' }) });
  assert.equal(form.status, 415);
  assert.equal((await fetch(`${url}/agui`, { method: 'POST', body: new URLSearchParams({ a: 'b' }) })).status, 415);
  const image = { type: 'image_url', image_url: { url: 'file:///etc/passwd' } };
  const wrong = await postJson(`${url}/v1/chat/completions`, { model: 'argocd', messages: [{ role: 'user', content: [image] }] });
  assert.deepEqual([wrong.status, wrong.error.param], [400, 'messages[0].content[0].image_url.url']);
  assert.equal((await postJson(`${url}/agui`, { threadId: 't', runId: 'r', messages: [] })).status, 400);
  const tenant = await postJson(`${url}/acme/v1/chat/completions`, chatOf('hello'));
  assert.equal(tenant.status, 404);
});

test('pages of an allowed origin can read the fronts, including errors', async t => {
  const { url } = await openIngress(t, { cors: { origins: ['https://app.example'], requestHeaders: [] } });
  const origin = { origin: 'https://app.example' };
  const { headers } = await postJson(`${url}/v1/responses`, {}, origin);
  assert.equal(headers.get('access-control-allow-origin'), 'https://app.example');
  const other = await postJson(`${url}/v1/responses`, {}, { origin: 'https://evil.example' });
  assert.equal(other.headers.get('access-control-allow-origin'), null);
});
