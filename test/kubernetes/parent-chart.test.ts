import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CHART, type Manifest, manifestsOf, podSpecs, skip } from './rendered-chart.ts';

const AGENT = { name: 'weather', hopline: 'shop-hopline', entry: { adapter: 'recording', path: 'a.jsonl' } };
const DEPENDENCIES = [
  { name: 'hopline', version: '*', condition: 'hopline.enabled' },
  { name: 'hopline-agent', version: '*', alias: 'weather', condition: 'weather.enabled' },
];

/** The release `shop` of a chart with both charts of Hopline as dependencies. */
function renderParent(values: object): Manifest[] {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-parent-'));
  try {
    mkdirSync(join(folder, 'charts'));
    for (const name of ['hopline', 'hopline-agent'])
      cpSync(join(CHART, '..', name), join(folder, 'charts', name), { recursive: true, dereference: true });
    writeFileSync(
      join(folder, 'Chart.yaml'),
      JSON.stringify({ apiVersion: 'v2', name: 'parent', version: '0.1.0', dependencies: DEPENDENCIES }),
    );
    writeFileSync(join(folder, 'values.yaml'), JSON.stringify(values));
    const args = ['template', 'shop', folder, '--kube-version', '1.34.0'];
    return manifestsOf(execFileSync('helm', args, { encoding: 'utf8', maxBuffer: 1 << 26, stdio: 'pipe' }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The users with which the services connect to NATS, by the address that they connect to. */
function usersByAddress(manifests: readonly Manifest[]): Record<string, string[]> {
  const clients = podSpecs(manifests).flatMap(({ containers }) => {
    const value = (name: string) => containers[0]!.env?.find(variable => variable.name === name)?.value;
    const url = value('NATS_URL');
    return url === undefined ? [] : [{ url, user: value('NATS_USER')! }];
  });
  const urls = [...new Set(clients.map(({ url }) => url))];
  return Object.fromEntries(urls.map(url => [url, clients.filter(client => client.url === url).map(({ user }) => user)]));
}

test('a chart with both charts as dependencies renders each with its own address and login of NATS', { skip }, () => {
  const manifests = renderParent({ hopline: { enabled: true, allowUnauthenticated: true }, weather: AGENT });
  const nodes = [0, 1, 2].map(node => `nats://shop-hopline-nats-${node}.shop-hopline-nats:4222`).join();
  const users = usersByAddress(manifests);
  assert.deepEqual(Object.keys(users).sort(), [nodes, 'nats://shop-hopline-nats:4222'].sort());
  assert.deepEqual(users[nodes]!.sort(), ['agent.files', 'agent.guide', 'ingress', 'notifier', 'relay', 'supervisor']);
  assert.deepEqual(users['nats://shop-hopline-nats:4222'], ['agent']);
});

test('the condition of a dependency turns a chart off', { skip }, () => {
  const names = (values: object) =>
    renderParent(values).flatMap(({ kind, metadata }) => (kind === 'Deployment' ? [metadata.name] : []));
  assert.deepEqual(names({ hopline: { enabled: false }, weather: { ...AGENT, enabled: true } }), ['shop-hopline-agent-weather']);
});
