import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { decodeRemoteResponse, decodeSse, Fold } from '@hopline/a2a';
import type { Agent } from '@hopline/agent';
import { createA2AAgent } from '@hopline/agent-a2a';
import { AllowedHosts, createHealth } from '@hopline/lifecycle';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { createRelay } from '../../../services/relay/src/relay.ts';
import { createSubAgent } from '../../../services/sub-agent/src/sub-agent.ts';
import { NO_METRICS } from '../../kit/no-metrics.ts';
import { succeeds } from '../../kit/succeeds.ts';
import { until } from '../../kit/until.ts';
import { answer, type Step, startRemoteAgent } from '../../support/agents/remote-agent.ts';

const logger = createLogger({ service: 'test', instance: 'test', level: 'fatal' });
const coalesce = { eventCostMs: 80, holdMsMax: 100, chunkBytesMax: 32_768 };

/** A sub-agent with server, relay and log, without a broker. */
async function serve(
  t: TestContext,
  agent: Agent,
  skills = [{ id: 'own', name: 'Own', description: 'From the file', tags: ['x'] }],
) {
  const log = createMemoryLog();
  const relay = await createRelay({
    log,
    instance: 'relay',
    coalesce,
    metrics: NO_METRICS,
    logger,
    leaseMs: 200,
    heartbeatMs: 50,
  });
  const health = createHealth();
  health.started([]);
  const probes = { health, metricsText: async () => '', loopLagMsMax: 60_000, hosts: new AllowedHosts() };
  const deps = { log, name: 'argocd', agent, skills, slots: 4, drainMs: 1_000, version: '0.1.0', publicUrl: undefined };
  const subAgent = createSubAgent({ retries: undefined, forwardText: undefined, ...deps, probes, metrics: NO_METRICS, logger });
  const url = await subAgent.start('127.0.0.1', 0);
  t.after(async () => {
    await subAgent.stop();
    await relay.stop();
    await log.close();
  });
  return { url, log, subAgent };
}

async function remote(t: TestContext, script: Step[]): Promise<Agent> {
  const server = await startRemoteAgent({ dialect: '0.3', script, card: { description: 'Argo CD' } });
  t.after(() => server.close());
  return createA2AAgent({ url: server.url });
}

/** The streaming request of S0 to a sub-agent. */
async function ask(url: string, text: string): Promise<{ fold: Fold; names: (string | undefined)[] }> {
  const message = { role: 'user', parts: [{ kind: 'text', text }], messageId: `msg-${Math.random()}` };
  const body = JSON.stringify({ id: 'test-2', method: 'message/stream', params: { message } });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const fold = new Fold();
  const names: (string | undefined)[] = [];
  for await (const { data } of decodeSse(response.body as AsyncIterable<Uint8Array>)) {
    const frame = JSON.parse(data) as { id: string };
    assert.equal(frame.id, 'test-2');
    const response = decodeRemoteResponse(frame);
    if (!('event' in response)) assert.fail(`not an event: ${data}`);
    fold.add(response.event);
    names.push('artifactUpdate' in response.event ? response.event.artifactUpdate.artifact.name : Object.keys(response.event)[0]);
  }
  return { fold, names };
}

test('a sub-agent answers a direct call on its own endpoint [S0-46 S0-21 S0-24]', async t => {
  const tokens = ['Here', ' is', ' the', ' ', '\n', '✅', ' v3.1.8', 'ha', 'ha'];
  const { url } = await serve(
    t,
    await remote(t, [
      { notice: 'start', tool: 'version_service__version' },
      { notice: 'end', tool: 'version_service__version' },
      ...answer(tokens),
    ]),
  );
  const { fold, names } = await ask(url, 'show argocd version');
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('response'), tokens.join(''));
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(names[0], 'task');
  const order = names.filter(name => name?.startsWith('tool_') || name === 'response');
  assert.deepEqual([...new Set(order)], ['tool_notification_start', 'tool_notification_end', 'response']);
  const notice = [...fold.artifacts.values()].find(artifact => artifact.name === 'tool_notification_start');
  assert.equal(notice?.text, '🔧 Argocd: Calling tool: Version_Service__Version\n');
  assert.deepEqual(notice?.metadata?.tool, 'version_service__version');
});

test('ids of the remote agent are not exposed [S0-34]', async t => {
  const server = await startRemoteAgent({ dialect: '0.3', script: answer(['a', 'b']) });
  t.after(() => server.close());
  const { url } = await serve(t, createA2AAgent({ url: server.url }));
  const { fold } = await ask(url, 'x');
  const [request] = server.requests;
  assert.ok(fold.task !== undefined && request !== undefined);
  assert.notEqual(request.taskId, fold.task.id);
  assert.ok(!JSON.stringify([fold.task, ...fold.artifacts.values()]).includes(request.taskId));
});

test('the card has the skills of the file and of the agent, and the probes respond', async t => {
  const { url } = await serve(t, await remote(t, answer(['x'])));
  const card = async () =>
    (await (await fetch(`${url}.well-known/agent-card.json`)).json()) as {
      description: string;
      skills: { id: string }[];
      url: string;
    };
  const { description, skills, url: cardUrl } = await card();
  assert.equal(description, 'Argo CD');
  assert.deepEqual(skills.map(skill => skill.id).sort(), ['own', 'script']);
  assert.equal(cardUrl, url);
  for (const path of ['livez', 'readyz', 'metrics']) assert.equal((await fetch(`${url}${path}`)).status, 200, path);
});

test('the entry of a remote agent has what its card shows and the findings about it, even for a card that cannot be used', async t => {
  const cardOf = async (agent: Agent) => {
    const { log } = await serve(t, agent);
    return (await log.agents.under('argocd'))[0]?.value.card;
  };
  const skills = [{ id: 'script', name: 'Script', description: '', tags: [] }];
  const server = await startRemoteAgent({ dialect: '1.0', script: [], card: { name: 'Argo', skills } });
  t.after(() => server.close());
  const shown = await cardOf(createA2AAgent({ url: server.url }));
  assert.deepEqual([shown?.name, shown?.interfaces], ['Argo', ['JSONRPC, A2A 1.0']]);
  assert.deepEqual(shown?.findings, ['skills[0].description is empty.', 'skills[0].tags is empty.']);
  const cardless = await startRemoteAgent({ dialect: '0.3', script: [], card: false });
  t.after(() => cardless.close());
  assert.match((await cardOf(createA2AAgent({ url: cardless.url })))?.findings[0] ?? '', /^The server has no agent card/);
  const grpcOnly = { supportedInterfaces: [{ url: 'x', protocolBinding: 'GRPC', protocolVersion: '1.0' }] };
  const other = createServer((_request, response) => response.end(JSON.stringify(grpcOnly))).listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  const unusable = await cardOf(createA2AAgent({ url: `http://127.0.0.1:${port}/` }));
  assert.ok(
    unusable?.findings.some(finding => finding.startsWith('supportedInterfaces has no interface')),
    String(unusable?.findings),
  );
});

test('an unreachable agent is reported with the reason, and counts as healthy again when it answers', {
  timeout: 120_000,
}, async t => {
  let isUp = false;
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const agent: Agent = {
    description: 'Remote',
    skills: async () => {
      if (!isUp) throw new Error('the agent cannot be reached', { cause: refused });
      return [];
    },
    run: async function* () {},
    close: async () => {},
  };
  const { subAgent } = await serve(t, agent);
  await assert.rejects(subAgent.check(), { message: 'the agent cannot be reached' });
  isUp = true;
  await until(() => succeeds(subAgent.check()));
});

test('an agent that asks for input continues with the answer, in the same task', async t => {
  const server = await startRemoteAgent({
    dialect: '0.3',
    script: ({ turn, text }) => (turn === 1 ? [{ token: 'Hm. ' }, { inputRequired: 'which?' }] : answer([`took ${text}`])),
  });
  t.after(() => server.close());
  const { url } = await serve(t, createA2AAgent({ url: server.url }));
  const { fold } = await ask(url, 'deploy');
  assert.equal(fold.task?.status.state, 'TASK_STATE_INPUT_REQUIRED');
  const message = {
    role: 'user',
    parts: [{ kind: 'text', text: 'prod' }],
    messageId: 'm-2',
    taskId: fold.task?.id,
    contextId: fold.task?.contextId,
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { result } = (await response.json()) as {
    result: { status: { state: string }; artifacts: { parts: { text: string }[] }[] };
  };
  assert.equal(result.status.state, 'completed');
  assert.deepEqual(
    result.artifacts.map(artifact => artifact.parts.map(part => part.text).join('')),
    ['Hm. ', 'took prod'],
  );
  assert.equal(server.requests[1]?.taskId, server.requests[0]?.taskId);
});
