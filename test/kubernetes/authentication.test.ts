import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AUDIENCE, createIssuer, ISSUER, type Issuer } from '../../packages/endpoint/src/issuer.test-kit.ts';
import { missingPrograms } from './cluster.ts';
import { IPV4_POLICIES, Release } from './release.ts';

const TIMEOUT_MS = 600_000;
const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };

const release = new Release('auth');
let issuer: Issuer;
let url: string;

before(
  async () => {
    if (missing) return;
    issuer = await createIssuer();
    await release.createNamespace();
    await release.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'jwks' },
      stringData: { 'jwks.json': issuer.keySet },
    });
    const auth = { issuer: ISSUER, audience: AUDIENCE, jwksSecret: 'jwks' };
    const agents = [recorded('guide', false), recorded('shown', true)];
    // Ready means that every pod has started, including the agents.
    await release.upgrade({ auth, allowUnauthenticated: false, nats: { replicas: 1 }, networkPolicy: IPV4_POLICIES, agents });
    url = await release.forward();
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

function recorded(name: string, expose: boolean): object {
  const skills = [{ id: name, name, description: `Explains ${name}.`, tags: [name] }];
  const entry = { adapter: 'recording', path: 'guide.jsonl', description: name, default: !expose, skills };
  return { name, expose, replicas: 1, pdb: false, folder: '/app/demo', entry };
}

test('ingress answers only a client with a token of the issuer', options, async () => {
  await assert.rejects(release.ask(url, 'explain hopline'), /requires authentication/i);
  const token = await issuer.token({ exp: Math.floor(Date.now() / 1000) + 600 });
  const asked = release.cliWith({ HOPLINE_TOKEN: token }, 'ask', '--url', url, 'explain hopline');
  assert.match(await asked, /relay/);
});

test('no port of the Service exposes probes or metrics', options, async () => {
  for (const path of ['metrics', 'livez', 'readyz']) assert.equal((await fetch(`${url}${path}`)).status, 404, path);
});

test("an agent's own endpoint refuses connections by default, and an exposed one asks for a token", options, async () => {
  const statusFor = async (agent: string) => {
    const [pod] = await release.pods(`agent-${agent}`);
    const address = await release.kubectl('get', pod!, '--output', 'jsonpath={.status.podIP}');
    const list = `fetch('http://${address}:8000/tasks', { headers: { 'a2a-version': '1.0' } })`;
    return release.runScript(`status-${agent}`, `${list}.then(({ status }) => status, () => 'refused').then(console.log)`);
  };
  assert.deepEqual([await statusFor('guide'), await statusFor('shown')], ['refused\n', '401\n']);
});
