import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { missingPrograms } from './cluster.ts';
import { checkAnswers, Load } from './load.ts';
import { CHART, demoAgents, Release } from './release.ts';

const QUESTION = 'explain hopline';
const TIMEOUT_MS = 600_000;

const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };

const release = new Release();
let url: string;
let answer: string;

before(
  async () => {
    if (missing) return;
    const startedMs = performance.now();
    await release.install();
    url = await release.forward();
    answer = await release.ask(url, QUESTION);
    process.stdout.write(
      `# ${((performance.now() - startedMs) / 1000).toFixed(1)} s from helm install to the end of the first answer\n`,
    );
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

test('the chart with no values runs in a restricted namespace and answers through its Service', options, () => {
  assert.match(answer, /relay/);
  assert.ok(answer.length > 1_000);
});

test('helm test asks a question from inside the cluster', options, async () => {
  assert.match(await release.helm('test', 'hopline', '--timeout', '120s'), /Succeeded/);
});

for (const component of ['relay', 'ingress', 'supervisor', 'agent-guide']) {
  test(`${component}: killing a pod in mid-stream loses no text`, options, async () => {
    const asked = release.asking(url, QUESTION);
    await asked.begun;
    const pods = await release.pods(component);
    await release.kubectl('delete', ...pods, '--grace-period=0', '--force');
    assert.equal(await asked.answer, answer);
    await release.kubectl('rollout', 'status', `deployment/hopline-${component}`, '--timeout=120s');
  });
}

test('restarting a NATS node in mid-stream loses no text', options, async () => {
  const asked = release.asking(url, QUESTION);
  await asked.begun;
  // Do not force the deletion, because the next pod would open the volume while the old server still writes to it.
  await release.kubectl('delete', 'pod/hopline-nats-0');
  assert.equal(await asked.answer, answer);
  await release.kubectl('rollout', 'status', 'statefulset/hopline-nats', '--timeout=180s');
});

test('a rolling update of everything under load, including NATS, fails no request and loses no text', options, async () => {
  const load = await Load.start(release, { name: 'rolling', image: await release.image(), workers: 4 });
  await load.complete(4);
  const quiet = (await load.answers()).length;
  await release.kubectl('rollout', 'restart', 'deployment');
  await release.rolledOut();
  await release.kubectl('rollout', 'restart', 'statefulset');
  await release.rolledOut();
  await load.complete(8);
  const answers = await load.stop();
  checkAnswers('before the rolling update', answers.slice(0, quiet));
  checkAnswers('rolling update', answers.slice(quiet));
});

test('relays scale from one to five and back in mid-stream without losing text', options, async () => {
  await release.upgrade({ relay: { replicas: 1 } });
  const load = await Load.start(release, { name: 'scaling', image: await release.image(), workers: 4 });
  await load.complete(4);
  for (const replicas of [5, 1]) {
    await release.upgrade({ relay: { replicas } });
    await release.rolledOut();
    await load.complete(8);
  }
  checkAnswers('relays 1, 5, 1', await load.stop());
});

const kubeletPid = Number(process.env.HOPLINE_KUBELET_PID ?? '0');
const KUBELET_STOPPED_MS = 45_000;
test('a frozen kubelet loses no text', {
  ...options,
  skip: missing ?? (kubeletPid === 0 && 'HOPLINE_KUBELET_PID is not set: the process id of the kubelet of a cluster for tests'),
}, async () => {
  const load = await Load.start(release, { name: 'node', image: await release.image(), workers: 4 });
  await load.complete(4);
  process.kill(kubeletPid, 'SIGSTOP');
  try {
    await sleep(KUBELET_STOPPED_MS);
  } finally {
    process.kill(kubeletPid, 'SIGCONT');
  }
  await release.rolledOut();
  await load.complete(8);
  // Kubernetes removes the pods of a silent node from their Services. With one node no pod is left, so new connections are refused.
  checkAnswers('kubelet stopped for 45 s', await load.stop(), { refusedConnectionsAllowed: true });
});

const DRAIN_SECONDS = 30;
const DRAINS = {
  'two pods of the agent: the budgets keep one of each service': { replicas: 2, left: 1 },
  'one pod of the agent: its questions wait until it is back': { replicas: 1, left: 0 },
};
for (const [name, { replicas, left }] of Object.entries(DRAINS)) {
  test(`draining the node fails no task; ${name}`, options, async t => {
    const nodes = (await release.kubectl('get', 'nodes', '--output', 'name')).trim().split('\n');
    // Only a cluster of one node is certainly a test cluster, and only there an evicted pod finds no other node.
    if (nodes.length > 1) return t.skip('the cluster has more than one node');
    const node = nodes[0]!.replace('node/', '');
    await release.upgrade({ agents: { guide: { ...demoAgents().guide, replicas, pdb: true } } });
    const load = await Load.start(release, { name: 'drain', image: await release.image(), workers: 4 });
    await load.complete(4);
    const evicted = [
      '--pod-selector',
      'app.kubernetes.io/instance=hopline',
      '--delete-emptydir-data',
      `--timeout=${DRAIN_SECONDS}s`,
    ];
    try {
      await assert.rejects(release.kubectl('drain', node, ...evicted), /violate the pod's disruption budget/);
      assert.equal((await release.pods('agent-guide')).length, left);
      assert.equal((await release.pods('relay')).length, 1);
    } finally {
      await release.kubectl('uncordon', node);
    }
    await release.rolledOut();
    await load.complete(8);
    checkAnswers(`drain, ${replicas} pods of the agent`, await load.stop());
  });
}

test('an added agent restarts no other pod, and answers', options, async () => {
  const before = await release.kubectl('get', 'pods', '--output', 'name', '--selector', 'app.kubernetes.io/component!=test');
  const { guide } = demoAgents();
  const entry = { ...guide.entry, description: 'Another one', pace: 'burst', default: false, skills: [] };
  await release.upgrade({ agents: { guide, second: { ...guide, entry } } });
  const now = await release.kubectl('get', 'pods', '--output', 'name', '--selector', 'app.kubernetes.io/component!=test');
  const added = now.split('\n').filter(pod => !before.includes(pod));
  assert.equal(added.length, 1, added.join());
  assert.match(added[0]!, /agent-second/);
});

/** The default of the chart hopline-agent. */
const AGENT_REPLICAS = 2;
test('an agent with a release of its own restarts no other pod, and answers', options, async () => {
  const pods = async () => (await release.kubectl('get', 'pods', '--output', 'name')).split('\n');
  const before = await pods();
  const { guide } = demoAgents();
  await release.addAgent('third', { folder: guide.folder, entry: { ...guide.entry, default: false, skills: [] } });
  try {
    const added = (await pods()).filter(pod => !before.includes(pod));
    assert.equal(added.length, AGENT_REPLICAS, added.join());
    for (const pod of added) assert.match(pod, /agent-third/);
    assert.match(await release.cli('ask', '--url', url, '--agent', 'third', QUESTION), /relay/);
  } finally {
    await release.helm('uninstall', 'third', '--wait');
  }
});

test('an upgrade to another format of the log is refused and changes nothing', options, async () => {
  const objects = () => release.kubectl('get', 'deployment,statefulset', '--output', 'jsonpath={.items[*].metadata.generation}');
  const before = await objects();
  const folder = mkdtempSync(join(tmpdir(), 'hopline-chart-'));
  try {
    cpSync(CHART, folder, { recursive: true });
    const path = join(folder, 'Chart.yaml');
    writeFileSync(path, readFileSync(path, 'utf8').replace('log-format: "1"', 'log-format: "2"'));
    await assert.rejects(release.upgrade({}, folder), /the log of this release has format 1, and version \S+ needs format 2/);
  } finally {
    rmSync(folder, { recursive: true });
  }
  assert.equal(await objects(), before);
});

test('a backup is restored into an empty NATS with another number of nodes', options, async () => {
  const task = JSON.parse(await release.cli('list', '--url', url, '--json', '--state', 'completed', '--limit', '1')).id;
  const before = await release.cli('get', '--url', url, task);
  const secret = () => release.kubectl('get', 'secret/hopline-secrets', '--output', 'jsonpath={.data.key}');
  const key = await secret();
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  await release.apply({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'backups' }, spec: claim });
  await release.upgrade({ backup: { enabled: true, existingClaim: 'backups' } });
  await release.kubectl('create', 'job', '--from', 'cronjob/hopline-backup', 'backup-now');
  await release.kubectl('wait', '--for', 'condition=complete', 'job/backup-now', '--timeout=120s');
  const pods = await release.kubectl('get', 'pods', '--selector', 'job-name=backup-now', '--output', 'name');
  await release.kubectl('delete', 'job/backup-now');
  await release.uninstall();
  await release.kubectl('delete', 'pvc', '--selector', 'app.kubernetes.io/component=nats');
  const values = { nats: { replicas: 1 }, backup: { existingClaim: 'backups' } };
  const restore = pods.trim().replace('pod/', '');
  await release.upgrade(
    { ...values, relay: { replicas: 0 }, backup: { ...values.backup, restore } },
    undefined,
    undefined,
    false,
  );
  await release.kubectl('wait', '--for', 'condition=complete', 'job/hopline-restore', '--timeout=180s');
  await release.upgrade(values);
  await release.reachable(url);
  assert.equal(await release.cli('get', '--url', url, task), before);
  assert.equal(await release.ask(url, QUESTION), answer);
  assert.equal(await secret(), key, 'the key of stored webhooks is that of the previous release');
});

test('NATS with one node restarts under load: no connection is refused, no text is lost', options, async () => {
  await release.upgrade({ nats: { replicas: 1 } });
  const load = await Load.start(release, { name: 'one-node', image: await release.image(), workers: 4 });
  await load.complete(4);
  await release.kubectl('rollout', 'restart', 'statefulset');
  await release.rolledOut();
  await load.complete(8);
  checkAnswers('NATS of one node restarts', await load.stop());
});

test('uninstall leaves only the volumes of NATS and the key of the secrets in them', options, async () => {
  await release.kubectl('delete', 'pod', '--selector', 'app.kubernetes.io/component=test', '--ignore-not-found');
  await release.uninstall();
  const left = await release.kubectl('get', 'all,configmap,secret,pvc,pdb,networkpolicy', '--output', 'name');
  const names = left.split('\n').filter(name => name !== '' && !/kube-root-ca.crt/.test(name) && !name.startsWith('pod/'));
  assert.ok(
    names.every(name => /^persistentvolumeclaim\/(data-hopline-nats-\d|backups)$|^secret\/hopline-(nats|secrets)$/.test(name)),
    names.join(),
  );
});
