import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { missingPrograms } from './cluster.ts';
import { checkAnswers, Load } from './load.ts';
import { demoAgents, Release } from './release.ts';

const QUESTION = 'explain hopline';
const TIMEOUT_MS = 600_000;
const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };

/** The image of the release itself, so that the cluster needs no other. */
const IMAGE = 'hopline:0.1.0';
const further = (name: string, script: string) => ({
  name,
  image: IMAGE,
  imagePullPolicy: 'IfNotPresent',
  command: ['/nodejs/bin/node', '--eval', script],
});
const VALUES = {
  commonLabels: { cost: 'a2a' },
  extraObjects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine-{{ .Release.Name }}' } }],
  pods: {
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    tolerations: [{ operator: 'Exists' }],
    serviceAccount: { create: true },
    initContainers: [further('first', 'console.log("first")')],
    spec: { hostAliases: [{ ip: '127.0.0.1', hostnames: ['mine.example'] }] },
  },
  ingress: {
    pods: {
      preStopSeconds: 2,
      priorityClassName: 'system-cluster-critical',
      serviceAccount: { annotations: { 'example.com/role': 'front' } },
      sidecars: [further('beside', 'setInterval(() => {}, 1000)')],
      strategy: { rollingUpdate: { maxSurge: 2 } },
    },
  },
  relay: { pods: { initContainers: null, securityContext: { supplementalGroups: [4000] } } },
  agents: { guide: { ...demoAgents().guide, pods: { labels: { team: 'docs' } } } },
  nats: {
    pods: { annotations: { mesh: 'off' } },
    config: 'write_deadline: 5s',
    jetStreamConfig: 'max_outstanding_catchup: 32MB',
  },
};

const release = new Release('placement');
let url: string;
let task: string;
let stored: string;

before(
  async () => {
    if (missing) return;
    await release.install(VALUES);
    url = await release.forward();
    await release.ask(url, QUESTION);
    task = JSON.parse(await release.cli('list', '--url', url, '--json', '--limit', '1')).id;
    stored = await release.cli('get', '--url', url, task);
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

type Pod = {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: { serviceAccountName: string; priority: number; hostAliases: unknown; securityContext: object; containers: object[] };
};

test('a restricted namespace accepts pods that are placed and shaped by values, and they answer', options, async () => {
  assert.ok(stored.length > 1_000);
  const { items } = JSON.parse(await release.kubectl('get', 'pods', '--output', 'json')) as { items: Pod[] };
  const pod = (component: string) => items.find(({ metadata }) => metadata.labels['app.kubernetes.io/component'] === component)!;
  for (const { metadata, spec } of items) {
    assert.equal(metadata.labels.cost, 'a2a');
    assert.deepEqual(spec.hostAliases, [{ ip: '127.0.0.1', hostnames: ['mine.example'] }]);
  }
  assert.deepEqual(
    [pod('ingress').spec.serviceAccountName, pod('relay').spec.serviceAccountName],
    ['hopline-ingress', 'hopline'],
  );
  assert.ok(pod('ingress').spec.priority > pod('relay').spec.priority);
  assert.equal(pod('ingress').spec.containers.length, 2);
  assert.deepEqual((pod('relay').spec.securityContext as { supplementalGroups: number[] }).supplementalGroups, [4000]);
  assert.equal(pod('agent-guide').metadata.labels.team, 'docs');
  assert.equal(pod('nats').metadata.annotations.mesh, 'off');
  assert.match(await release.kubectl('get', 'configmap/mine-hopline', '--output', 'name'), /mine-hopline/);
});

/** `COMPONENT/UID` of the release's pods, without those of the load. */
async function podsOfRelease(): Promise<string[]> {
  const columns = '{.metadata.labels.app\\.kubernetes\\.io/component}/{.metadata.uid} ';
  const selector = ['--selector', 'app.kubernetes.io/instance=hopline'];
  const pods = await release.kubectl('get', 'pods', ...selector, '--output', `jsonpath={range .items[*]}${columns}{end}`);
  return pods.trim().split(' ').sort();
}

test(
  'the first upgrade after an installation, and one with only another label of a Service, replace no pod',
  options,
  async () => {
    const found = await podsOfRelease();
    await release.upgrade(VALUES);
    assert.deepEqual(await podsOfRelease(), found);
    await release.upgrade({ ...VALUES, ingress: { ...VALUES.ingress, service: { annotations: { a: 'b' } } } });
    assert.deepEqual(await podsOfRelease(), found);
  },
);

test('a new password of one service restarts it and NATS under load, and no text is lost', options, async () => {
  const load = await Load.start(release, { name: 'password', image: await release.image(), workers: 2 });
  await load.complete(2);
  const found = await podsOfRelease();
  const password = Buffer.from('p-another-password').toString('base64');
  await release.kubectl('patch', 'secret/hopline-nats', '--patch', JSON.stringify({ data: { relay: password } }));
  await release.upgrade(VALUES);
  await release.rolledOut();
  await load.complete(4);
  checkAnswers('a new password of the relays', await load.stop());
  const now = await podsOfRelease();
  const replaced = found.filter(pod => !now.includes(pod)).map(pod => pod.split('/')[0]);
  assert.deepEqual([...new Set(replaced)], ['nats', 'relay']);
});

test('all passwords are replaced from a new Secret while NATS is stopped', options, async () => {
  await release.kubectl('scale', 'statefulset/hopline-nats', '--replicas=0');
  await release.kubectl('delete', 'secret/hopline-nats');
  await release.upgrade(VALUES);
  await release.rolledOut();
  await release.reachable(url);
  assert.equal(await release.cli('get', '--url', url, task), stored);
  await release.ask(url, QUESTION);
});

test('larger volumes: the claims grow, and NATS learns its new size without losing a task', options, async t => {
  const classes = await release.kubectl('get', 'storageclass', '--output', 'jsonpath={.items[*].allowVolumeExpansion}');
  if (!classes.includes('true')) return t.skip('no storage class permits expansion');
  const load = await Load.start(release, { name: 'volumes', image: await release.image(), workers: 2 });
  await load.complete(2);
  const size = { spec: { resources: { requests: { storage: '12Gi' } } } };
  for (const node of [0, 1, 2]) await release.kubectl('patch', `pvc/data-hopline-nats-${node}`, '--patch', JSON.stringify(size));
  await release.kubectl('delete', 'statefulset/hopline-nats', '--cascade=orphan');
  await release.upgrade({ ...VALUES, nats: { ...VALUES.nats, storage: { size: '12Gi' } } });
  await release.rolledOut();
  await load.complete(4);
  checkAnswers('larger volumes', await load.stop());
  assert.equal(await release.cli('get', '--url', url, task), stored);
  const conf = await release.kubectl('get', 'configmap/hopline-nats', '--output', 'jsonpath={.data.nats\\.conf}');
  assert.match(conf, new RegExp(`max_file_store: ${Math.floor((12 * 2 ** 30 * 9) / 10)}\\n`));
});
