import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { createHealth } from '@hopline/lifecycle';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger, type HopMetrics } from '@hopline/telemetry';
import { ingressConfig } from './config.ts';
import { createIngress } from './ingress.ts';

async function openIngress(t: TestContext, publicUrl?: string, push = false) {
  const log = createMemoryLog();
  await log.agents.put('argocd', {
    name: 'argocd',
    description: 'ArgoCD',
    url: '',
    skills: [{ id: 'version', name: 'Version', description: 'Shows it', tags: [] }],
    beat: 1,
  });
  const health = createHealth();
  health.started([{ name: 'log', check: () => log.check() }]);
  const silent = { add: () => {}, recordMs: () => {} };
  const metrics = new Proxy({}, { get: () => silent }) as HopMetrics;
  const ingress = await createIngress({
    log,
    profile: 'caipe',
    cardName: 'Platform Engineer',
    version: '1.2.3',
    publicUrl,
    limits: {},
    push,
    probes: { health, metricsText: async () => '# none\n', loopLagMsMax: 60_000 },
    metrics,
    logger: createLogger({ service: 'ingress', instance: 'test', level: 'silent' }),
  });
  const url = await ingress.listen('127.0.0.1', 0);
  t.after(() => ingress.close());
  return { log, url };
}

test('S3-1 S4-3 the card has the name, the address and the skills of the agents', async t => {
  const { url } = await openIngress(t);
  const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as Record<string, unknown>;
  assert.deepEqual([card.name, card.version, card.url], ['Platform Engineer', '1.2.3', `${url}/`]);
  assert.deepEqual(
    (card.skills as { id: string }[]).map(skill => skill.id),
    ['version'],
  );
});

test('C-27 the card names the public address when there is one', async t => {
  const { url } = await openIngress(t, 'https://agents.example/a2a');
  const card = (await (await fetch(`${url}/.well-known/agent.json`)).json()) as {
    url: string;
    supportedInterfaces: { url: string }[];
  };
  assert.deepEqual([card.url, card.supportedInterfaces[0]?.url], ['https://agents.example/a2a', 'https://agents.example/a2a']);
});

test('S4-2 S4-23 webhooks are on the card when they are taken, and only then', async t => {
  for (const push of [false, true]) {
    const { url } = await openIngress(t, undefined, push);
    const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as { capabilities: Record<string, boolean> };
    assert.equal(card.capabilities.pushNotifications, push);
    const response = await fetch(`${url}/tasks/x/pushNotificationConfigs`, { headers: { 'a2a-version': '1.0' } });
    const { error } = (await response.json()) as { error: { details: { reason: string }[] } };
    assert.equal(error.details[0]?.reason, push ? 'TASK_NOT_FOUND' : 'PUSH_NOTIFICATION_NOT_SUPPORTED');
  }
});

test('S4-38 output modes that the card does not offer are refused', async t => {
  const { url } = await openIngress(t);
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const body = { id: 1, method: 'SendMessage', params: { message, configuration: { acceptedOutputModes: ['video/mp4'] } } };
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(((await response.json()) as { error: { code: number } }).error.code, -32005);
});

test('one door for A2A and the probes, JSON for everything else', async t => {
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

test('the README has the settings as they are', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  assert(readme.includes(ingressConfig.table()), ingressConfig.table());
});
