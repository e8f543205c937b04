import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { missingPrograms } from './cluster.ts';
import { IPV4_POLICIES, Release } from './release.ts';

const TIMEOUT_MS = 600_000;
const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };

const release = new Release('walls');
/** All walls at once: policies, and an account of NATS for each agent. `cluster.test.ts` has neither. */
const VALUES = { nats: { replicas: 1 }, console: { enabled: true }, networkPolicy: IPV4_POLICIES };
/** A pod with an HTTP server. Only the policy below protects one, the pod named `closed`. */
const server = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { server: name } },
  spec: {
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'server',
        image: 'hopline:0.1.0',
        imagePullPolicy: 'IfNotPresent',
        command: ['/nodejs/bin/node', '--eval', "require('node:http').createServer((_, r) => r.end('ok')).listen(8000)"],
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        readinessProbe: { httpGet: { path: '/', port: 8000 }, periodSeconds: 1 },
      },
    ],
  },
});
const CLOSED = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'closed' },
  spec: { podSelector: { matchLabels: { server: 'closed' } }, policyTypes: ['Ingress'] },
};

let url: string;
let notEnforced: string | undefined;
const addresses: Record<string, string> = {};

before(
  async () => {
    if (missing) return;
    await release.createNamespace();
    await release.apply(CLOSED);
    for (const name of ['open', 'closed', 'stranger']) await release.apply(server(name));
    await release.kubectl('wait', '--for', 'condition=Ready', 'pod/open', 'pod/closed', 'pod/stranger', '--timeout=120s');
    await release.upgrade(VALUES);
    const { items } = JSON.parse(await release.kubectl('get', 'pods', '--output', 'json'));
    type Pod = { metadata: { name: string; labels: Record<string, string> }; status: { podIP: string } };
    for (const { metadata, status } of items as Pod[])
      addresses[metadata.labels['app.kubernetes.io/component'] ?? metadata.name] = status.podIP;
    url = await release.forward();
    // Enforcement is the network's part: shown by a policy that is not of the chart.
    if ((await reach('pod/stranger', 'closed', 8000)) === 'connected') notEnforced = 'the cluster does not enforce NetworkPolicy';
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

/** Whether a pod reaches a port of another pod: `connected`, `silent`, or the code of the error. */
async function reach(from: string, to: string, port: number, container?: string): Promise<string> {
  const connect = `require('node:net').connect({ host: '${addresses[to]}', port: ${port}, timeout: 3000 })
    .on('connect', () => end('connected')).on('timeout', () => end('silent')).on('error', ({ code }) => end(code));
    const end = word => { console.log(word); process.exit(0); };`;
  const at = container === undefined ? [] : ['--container', container];
  return (await release.kubectl('exec', from, ...at, '--', '/nodejs/bin/node', '--eval', connect)).trim();
}

type Try = [from: string, to: string, port: number];

async function check(expected: string, tries: readonly Try[]): Promise<void> {
  for (const [from, to, port] of tries) {
    const pod = from === 'stranger' ? 'pod/stranger' : from === 'nats' ? 'pod/hopline-nats-0' : `deployment/hopline-${from}`;
    assert.equal(await reach(pod, to, port), expected, `${from} to ${to}:${port}`);
  }
}

test('a pod that is not of Hopline reaches ingress and the console, and no other port of Hopline', options, async t => {
  if (notEnforced) return t.skip(notEnforced);
  await check('connected', [
    ['stranger', 'open', 8000],
    ['stranger', 'ingress', 8000],
    ['stranger', 'ingress', 8001],
    ['stranger', 'console', 8000],
  ]);
  await check('silent', [
    ['stranger', 'nats', 4222],
    ['stranger', 'nats', 6222],
    ['stranger', 'nats', 8222],
    ['stranger', 'ingress', 8002],
    ['stranger', 'console', 8002],
    ['stranger', 'relay', 8000],
    ['stranger', 'supervisor', 8000],
    ['stranger', 'notifier', 8000],
    ['stranger', 'agent-guide', 8002],
  ]);
});

test('services reach NATS, and no other pod; the console reaches ingress, and not NATS', options, async t => {
  if (notEnforced) return t.skip(notEnforced);
  for (const from of ['ingress', 'relay', 'supervisor', 'notifier', 'agent-guide']) {
    await check('connected', [[from, 'nats', 4222]]);
    await check('silent', [
      [from, 'open', 8000],
      [from, 'nats', 8222],
    ]);
  }
  await check('connected', [['console', 'ingress', 8000]]);
  await check('silent', [
    ['console', 'nats', 4222],
    ['console', 'open', 8000],
    ['relay', 'ingress', 8000],
  ]);
});

test(
  'the code of an agent reaches no other pod; NATS answers it, because it shares the network of its sub-agent',
  options,
  async t => {
    if (notEnforced) return t.skip(notEnforced);
    const from = 'deployment/hopline-agent-files';
    assert.equal(await reach(from, 'open', 8000, 'code'), 'silent');
    assert.equal(await reach(from, 'nats', 4222, 'code'), 'connected');
  },
);

test('with its policies Hopline answers, from inside and for an agent of another release', options, async () => {
  assert.match(await release.ask(url, 'explain hopline'), /relay/);
  assert.match(await release.helm('test', 'hopline', '--timeout', '120s'), /Succeeded/);
  const entry = { adapter: 'recording', path: 'guide.jsonl', description: 'another', default: false, skills: [] };
  await release.addAgent('third', { folder: '/app/demo', replicas: 1, streamReplicas: 1, entry, networkPolicy: IPV4_POLICIES });
  try {
    assert.match(await release.cli('ask', '--url', url, '--agent', 'third', 'explain hopline'), /relay/);
  } finally {
    await release.helm('uninstall', 'third', '--wait');
  }
});

test('a value lets a service reach a further pod', options, async t => {
  if (notEnforced) return t.skip(notEnforced);
  const to = [{ podSelector: { matchLabels: { server: 'open' } } }];
  await release.upgrade({ ...VALUES, notifier: { to } });
  // The network applies a changed policy when it has seen it.
  while ((await reach('deployment/hopline-notifier', 'open', 8000)) !== 'connected');
  assert.equal(await reach('deployment/hopline-relay', 'open', 8000), 'silent');
});
