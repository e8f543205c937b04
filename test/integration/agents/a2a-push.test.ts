import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import { type A2AOptions, createA2AAgent } from '@hopline/agent-a2a';
import { AllowedHosts, createHealth } from '@hopline/lifecycle';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { createSubAgent } from '../../../services/sub-agent/src/sub-agent.ts';
import { CALL_BYTES_MAX, TurnWebhooks } from '../../../services/sub-agent/src/turn-webhooks.ts';
import { listen } from '../../kit/listen.ts';
import { NO_METRICS } from '../../kit/no-metrics.ts';
import { until } from '../../kit/until.ts';
import {
  answer,
  type RemoteAgent,
  type RemoteAgentOptions,
  type Step,
  startRemoteAgent,
} from '../../support/agents/remote-agent.ts';
import { eventsOf, lastOf, textOf } from '../../support/agents/turn.ts';

const logger = createLogger({ service: 'test', instance: 'test', level: 'fatal' });
const PUSHES_ONLY = { streaming: false, pushNotifications: true };

/** A remote agent, its adapter, and the sub-agent's server, which receives the remote agent's calls. */
async function trio(t: TestContext, remoteOptions: Partial<RemoteAgentOptions>, options: Partial<A2AOptions> = {}) {
  const remote = await startRemoteAgent({ dialect: '1.0', script: [], card: PUSHES_ONLY, pushes: 'each', ...remoteOptions });
  const webhooks = new TurnWebhooks(undefined);
  const agent = createA2AAgent({ url: remote.url, webhooks: webhooks.forAgent(remote.url), ...options });
  const log = createMemoryLog();
  const health = createHealth();
  health.started([]);
  const probes = { health, metricsText: async () => '', loopLagMsMax: 60_000, hosts: new AllowedHosts() };
  const deps = {
    log,
    name: 'argocd',
    agent,
    webhooks,
    skills: [],
    slots: 4,
    drainMs: 1_000,
    version: '0.1.0',
    publicUrl: undefined,
  };
  const subAgent = createSubAgent({ ...deps, retries: undefined, forwardText: undefined, probes, metrics: NO_METRICS, logger });
  const url = await subAgent.start('127.0.0.1', 0);
  t.after(async () => {
    await subAgent.stop();
    await remote.close();
    await log.close();
  });
  return { remote, agent, webhooks, url };
}

const countOf = ({ requests }: RemoteAgent, method: string) => requests.filter(request => request.method === method).length;
const webhookIn = ({ requests }: RemoteAgent) =>
  /http:[^"]*\/webhooks\/[\w-]+/.exec(JSON.stringify(requests[0]?.params))?.[0] ?? '';

const PIECES = Array.from({ length: 200 }, (_, at) => (at % 7 === 0 ? ' 🚀\n' : `t${at}`));

for (const dialect of ['0.3', '1.0'] as const) {
  test(`a ${dialect} agent that pushes without streaming is polled when it calls, and its text is complete`, async t => {
    const quiet: Step[] = [{ token: 'first ' }, { pause: 3_000 }, ...answer(PIECES)];
    const { remote, agent, webhooks } = await trio(t, { dialect, script: quiet });
    const events = await eventsOf(agent, 'go');
    assert.equal(textOf(events), `first ${PIECES.join('')}`);
    lastOf(events, 'done');
    assert.equal(countOf(remote, 'send'), 1);
    assert.equal(countOf(remote, 'stream'), 0);
    // Polling after 0.25, 0.5, 1 and 2 s would make at least five requests in these 3 s; 200 calls must not make 200.
    assert.ok(countOf(remote, 'get') <= 4, `${countOf(remote, 'get')} requests of tasks/get`);
    assert.ok(remote.pushStatuses.length >= 2 && remote.pushStatuses.every(status => status === 204));
    assert.equal(webhooks.size, 0, 'the webhook address ends with its turn');
  });

  test(`a ${dialect} agent that rejects webhooks, contrary to its card, gets a blocking send`, async t => {
    const { remote, agent, webhooks } = await trio(t, { dialect, script: answer(PIECES), pushes: 'refused' });
    assert.equal(textOf(await eventsOf(agent, 'go')), PIECES.join(''));
    assert.equal(countOf(remote, 'send'), 1, 'the rejected send created no task');
    assert.doesNotMatch(JSON.stringify(remote.requests), /webhooks/);
    assert.equal(webhooks.size, 0);
  });

  test(`a ${dialect} agent without streaming, webhooks and blocking sends is polled by tasks/get`, async t => {
    const script: Step[] = [{ token: 'a' }, { pause: 1_000 }, ...answer(['b', 'c'])];
    const { remote, agent } = await trio(t, { dialect, script, card: { streaming: false }, neverWaits: true });
    assert.equal(textOf(await eventsOf(agent, 'go')), 'abc');
    assert.ok(countOf(remote, 'get') >= 3);
    assert.doesNotMatch(JSON.stringify(remote.requests), /webhooks/);
  });
}

test('missing calls only delay the turn, because the task is polled as well', async t => {
  const script: Step[] = [{ token: 'a' }, { pause: 300 }, ...answer(['b'])];
  const { remote, agent } = await trio(t, { script, pushes: 'never' }, { lostCallMsMax: 3_000 });
  assert.equal(textOf(await eventsOf(agent, 'go')), 'ab');
  assert.equal(countOf(remote, 'get'), 1);
});

test('a turn whose agent neither calls nor finishes stops at its time limit and cancels the task', async t => {
  const { remote, agent } = await trio(t, { script: [{ token: 'a' }, { hang: true }], pushes: 'never' }, { totalMsMax: 2_000 });
  const failed = lastOf(await eventsOf(agent, 'go'), 'failed');
  assert.deepEqual([failed.reason, failed.retryable], ['the turn took too long', false]);
  assert.equal(countOf(remote, 'cancel'), 1);
});

test('a forged call changes nothing: its body is not used, and a call without the token is ignored', async t => {
  const forged = Promise.withResolvers<void>();
  async function* script(): AsyncGenerator<Step> {
    yield { token: 'true ' };
    await forged.promise;
    yield* answer(['answer']);
  }
  const { remote, agent, url } = await trio(t, { script, pushes: 'last' });
  const turn = eventsOf(agent, 'go');
  await until(() => remote.requests.length > 0);
  const webhook = webhookIn(remote);
  const lie = (state: string) =>
    JSON.stringify({
      statusUpdate: { taskId: remote.requests[0]?.taskId, status: { state, message: { parts: [{ text: 'lie' }] } } },
    });
  const post = async (to: string, body: string, type = 'application/json') =>
    (await fetch(to, { method: 'POST', headers: { 'content-type': type }, body })).status;
  assert.equal(await post(webhook, lie('TASK_STATE_COMPLETED')), 204);
  assert.equal(await post(webhook, '{', 'text/plain'), 204);
  assert.equal(await post(webhook, 'x'.repeat(CALL_BYTES_MAX)), 204);
  assert.equal(await post(webhook, 'x'.repeat(CALL_BYTES_MAX + 1)), 413);
  assert.equal((await fetch(webhook, { method: 'POST' })).status, 204);
  assert.equal((await fetch(webhook)).status, 404);
  const other = webhook.replace(/[\w-]{43}$/, 'A'.repeat(43));
  for (const body of [lie('TASK_STATE_FAILED'), 'x'.repeat(CALL_BYTES_MAX)]) assert.equal(await post(other, body), 204);
  assert.equal(await post(other, 'x'.repeat(CALL_BYTES_MAX + 1)), 413, 'the response of an existing webhook');
  for (const wrong of [`${webhook}x`, webhook.slice(0, -1), `${url}webhooks/`, `${url}webhooks/toString`])
    assert.equal(await post(wrong, lie('TASK_STATE_FAILED')), 404);
  forged.resolve();
  const events = await turn;
  assert.equal(textOf(events), 'true answer');
  lastOf(events, 'done');
  assert.equal(await post(webhook, lie('TASK_STATE_FAILED')), 204, 'the response does not disclose whether the turn exists');
});

test('an answer to a question is not mistaken for the question', async t => {
  const { agent } = await trio(t, {
    answersWithPreviousState: true,
    script: ({ turn }) => (turn === 1 ? [{ inputRequired: 'which?' }] : [{ pause: 200 }, ...answer(['prod'])]),
  });
  const { resume } = lastOf(await eventsOf(agent, 'deploy'), 'interrupted');
  assert.equal(textOf(await eventsOf(agent, 'prod', { resume })), 'prod');
});

test('an agent on another machine gets a webhook only with a public address', () => {
  const unlistening = new TurnWebhooks(undefined);
  const open = (webhooks: TurnWebhooks, url: string) => webhooks.forAgent(url).open(() => {})?.url;
  assert.equal(open(unlistening, 'http://127.0.0.1:1/'), undefined, 'the server is not listening yet');
  unlistening.listening('http://127.0.0.1:8001/');
  assert.match(open(unlistening, 'http://localhost:1/') ?? '', /^http:\/\/127\.0\.0\.1:8001\/webhooks\/[\w-]{43}$/);
  assert.equal(open(unlistening, 'http://agent.test/'), undefined);
  unlistening.listening('https://127.0.0.1:8001/');
  assert.equal(open(unlistening, 'http://127.0.0.1:1/'), undefined, 'the certificate is for another name');
  const known = new TurnWebhooks('https://hop.test/agents/argo');
  assert.match(open(known, 'http://agent.test/') ?? '', /^https:\/\/hop\.test\/agents\/argo\/webhooks\/[\w-]{43}$/);
});

for (const binding of ['HTTP+JSON', 'GRPC']) {
  test(`an agent with only a ${binding} interface fails with the reason`, async t => {
    const paths: string[] = [];
    const supportedInterfaces = [{ url: '/', protocolBinding: binding, protocolVersion: '1.0' }];
    const server = createServer(({ method, url }, response) => {
      paths.push(`${method} ${url}`);
      const known = url === '/.well-known/agent-card.json';
      response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ name: 'a', supportedInterfaces, capabilities: {}, skills: [] }));
    });
    const origin = await listen(server);
    t.after(() => server.close());
    const agent = createA2AAgent({ url: `${origin}/` });
    t.after(() => agent.close());
    const reason = "the agent's card has no JSON-RPC interface of A2A 0.2, 0.3 or 1.0, the only binding Hopline uses for agents";
    const failed = lastOf(await eventsOf(agent, 'go'), 'failed');
    assert.deepEqual([failed.reason, failed.retryable], [reason, false]);
    await assert.rejects(agent.skills(), { message: reason });
    assert.ok(
      paths.every(path => path.startsWith('GET ')),
      'nothing was sent',
    );
  });
}
