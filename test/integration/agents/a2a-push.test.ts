import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type A2AOptions, createA2AAgent } from '@hopline/agent-a2a';
import { createHealth } from '@hopline/lifecycle';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger, type HopMetrics } from '@hopline/telemetry';
import { createSubAgent } from '../../../services/sub-agent/src/sub-agent.ts';
import { CALL_BYTES_MAX, TurnWebhooks } from '../../../services/sub-agent/src/turn-webhooks.ts';
import {
  answer,
  type ForeignAgent,
  type ForeignAgentOptions,
  type Step,
  startForeignAgent,
} from '../../support/agents/remote-agent.ts';
import { eventsOf, lastOf, textOf } from '../../support/agents/turn.ts';

const metrics = new Proxy({}, { get: () => ({ add() {}, recordMs() {} }) }) as HopMetrics;
const logger = createLogger({ service: 'test', instance: 'test', level: 'fatal' });
const PUSHES_ONLY = { streaming: false, pushNotifications: true };

/** A foreign agent, ours for it, behind the sub-agent's door, which it may call. */
async function trio(t: TestContext, foreignOptions: Partial<ForeignAgentOptions>, options: Partial<A2AOptions> = {}) {
  const foreign = await startForeignAgent({ dialect: '1.0', script: [], card: PUSHES_ONLY, pushes: 'each', ...foreignOptions });
  const webhooks = new TurnWebhooks(undefined);
  const agent = createA2AAgent({ url: foreign.url, webhooks: webhooks.forAgent(foreign.url), ...options });
  const log = createMemoryLog();
  const health = createHealth();
  health.started([]);
  const probes = { health, metricsText: async () => '', loopLagMsMax: 60_000 };
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
  const subAgent = createSubAgent({ ...deps, retries: undefined, forwardText: undefined, probes, metrics, logger });
  const url = await subAgent.start('127.0.0.1', 0);
  t.after(async () => {
    await subAgent.stop();
    await foreign.close();
    await log.close();
  });
  return { foreign, agent, webhooks, url };
}

const countOf = ({ requests }: ForeignAgent, method: string) => requests.filter(request => request.method === method).length;
const webhookIn = ({ requests }: ForeignAgent) =>
  /http:[^"]*\/webhooks\/[\w-]+/.exec(JSON.stringify(requests[0]?.params))?.[0] ?? '';

const PIECES = Array.from({ length: 200 }, (_, at) => (at % 7 === 0 ? ' 🚀\n' : `t${at}`));

for (const dialect of ['0.3', '1.0'] as const) {
  test(`an agent of ${dialect} that does not stream but pushes is asked when it calls, and its text is whole`, async t => {
    const quiet: Step[] = [{ token: 'first ' }, { pause: 3_000 }, ...answer(PIECES)];
    const { foreign, agent, webhooks } = await trio(t, { dialect, script: quiet });
    const events = await eventsOf(agent, 'go');
    assert.equal(textOf(events), `first ${PIECES.join('')}`);
    lastOf(events, 'done');
    assert.equal(countOf(foreign, 'send'), 1);
    assert.equal(countOf(foreign, 'stream'), 0);
    // 0.25 + 0.5 + 1 + 2 s: polling would have asked at least five times in these 3 s; 200 calls are no 200 looks.
    assert.ok(countOf(foreign, 'get') <= 4, `${countOf(foreign, 'get')} times tasks/get`);
    assert.ok(foreign.pushed.length >= 2 && foreign.pushed.every(status => status === 204));
    assert.equal(webhooks.size, 0, 'the address is gone with its turn');
  });

  test(`an agent of ${dialect} that takes no webhook although its card says so is asked to wait`, async t => {
    const { foreign, agent, webhooks } = await trio(t, { dialect, script: answer(PIECES), pushes: 'refused' });
    assert.equal(textOf(await eventsOf(agent, 'go')), PIECES.join(''));
    assert.equal(countOf(foreign, 'send'), 1, 'the refused one made no task');
    assert.doesNotMatch(JSON.stringify(foreign.requests), /webhooks/);
    assert.equal(webhooks.size, 0);
  });

  test(`an agent of ${dialect} that neither streams nor pushes nor waits is polled by tasks/get`, async t => {
    const script: Step[] = [{ token: 'a' }, { pause: 1_000 }, ...answer(['b', 'c'])];
    const { foreign, agent } = await trio(t, { dialect, script, card: { streaming: false }, neverWaits: true });
    assert.equal(textOf(await eventsOf(agent, 'go')), 'abc');
    assert.ok(countOf(foreign, 'get') >= 3);
    assert.doesNotMatch(JSON.stringify(foreign.requests), /webhooks/);
  });
}

test('calls that never come only delay: the task is looked at all the same', async t => {
  const script: Step[] = [{ token: 'a' }, { pause: 300 }, ...answer(['b'])];
  const { foreign, agent } = await trio(t, { script, pushes: 'never' }, { lostCallMsMax: 1_000 });
  assert.equal(textOf(await eventsOf(agent, 'go')), 'ab');
  assert.equal(countOf(foreign, 'get'), 1);
});

test('a turn whose agent neither calls nor ends takes no longer than it may, and the agent hears of it', async t => {
  const { foreign, agent } = await trio(t, { script: [{ token: 'a' }, { hang: true }], pushes: 'never' }, { totalMsMax: 700 });
  const failed = lastOf(await eventsOf(agent, 'go'), 'failed');
  assert.deepEqual([failed.reason, failed.retryable], ['the turn took too long', false]);
  assert.equal(countOf(foreign, 'cancel'), 1);
});

test('a forged call changes nothing: it is no news, and without the token it is not even heard', async t => {
  let goOn = () => {};
  const until = new Promise<void>(resolve => {
    goOn = resolve;
  });
  async function* script(): AsyncGenerator<Step> {
    yield { token: 'true ' };
    await until;
    yield* answer(['answer']);
  }
  const { foreign, agent, url } = await trio(t, { script, pushes: 'last' });
  const turn = eventsOf(agent, 'go');
  while (foreign.requests.length === 0) await new Promise(resolve => setTimeout(resolve, 10));
  const webhook = webhookIn(foreign);
  const lie = (state: string) =>
    JSON.stringify({
      statusUpdate: { taskId: foreign.requests[0]?.taskId, status: { state, message: { parts: [{ text: 'lie' }] } } },
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
  assert.equal(await post(other, 'x'.repeat(CALL_BYTES_MAX + 1)), 413, 'as for one that exists');
  for (const wrong of [`${webhook}x`, webhook.slice(0, -1), `${url}webhooks/`, `${url}webhooks/toString`])
    assert.equal(await post(wrong, lie('TASK_STATE_FAILED')), 404);
  goOn();
  const events = await turn;
  assert.equal(textOf(events), 'true answer');
  lastOf(events, 'done');
  assert.equal(await post(webhook, lie('TASK_STATE_FAILED')), 204, 'nobody learns whether there is such a turn');
});

test('an answer to a question is not taken for the question again', async t => {
  const { agent } = await trio(t, {
    answersAsItWas: true,
    script: ({ turn }) => (turn === 1 ? [{ inputRequired: 'which?' }] : [{ pause: 200 }, ...answer(['prod'])]),
  });
  const { resume } = lastOf(await eventsOf(agent, 'deploy'), 'interrupted');
  assert.equal(textOf(await eventsOf(agent, 'prod', { resume })), 'prod');
});

test('an agent on another machine gets no address of this one; with a public address it does', () => {
  const own = new TurnWebhooks(undefined);
  const open = (webhooks: TurnWebhooks, url: string) => webhooks.forAgent(url).open(() => {})?.url;
  assert.equal(open(own, 'http://127.0.0.1:1/'), undefined, 'the door is not open yet');
  own.listening('http://127.0.0.1:8001/');
  assert.match(open(own, 'http://localhost:1/') ?? '', /^http:\/\/127\.0\.0\.1:8001\/webhooks\/[\w-]{43}$/);
  assert.equal(open(own, 'http://agent.test/'), undefined);
  own.listening('https://127.0.0.1:8001/');
  assert.equal(open(own, 'http://127.0.0.1:1/'), undefined, 'its certificate is for another name');
  const known = new TurnWebhooks('https://hop.test/agents/argo');
  assert.match(open(known, 'http://agent.test/') ?? '', /^https:\/\/hop\.test\/agents\/argo\/webhooks\/[\w-]{43}$/);
});

for (const binding of ['HTTP+JSON', 'GRPC']) {
  test(`an agent that offers ${binding} alone is not guessed at: the reason says what is missing`, async t => {
    const paths: string[] = [];
    const supportedInterfaces = [{ url: '/', protocolBinding: binding, protocolVersion: '1.0' }];
    const server = createServer(({ method, url }, response) => {
      paths.push(`${method} ${url}`);
      const known = url === '/.well-known/agent-card.json';
      response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ name: 'a', supportedInterfaces, capabilities: {}, skills: [] }));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const agent = createA2AAgent({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
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
