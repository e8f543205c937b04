import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { missingPrograms } from './cluster.ts';
import { checkAnswers, Load } from './load.ts';
import { Release } from './release.ts';

const QUESTION = 'explain hopline';
const TIMEOUT_MS = 600_000;
const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };

const release = new Release('nodes');
const nodes = (replicas: number) => ({ nats: { replicas } });
const backup = { existingClaim: 'backups' };
let url: string;
let task: string;
let stored: string;

before(
  async () => {
    if (missing) return;
    await release.install(nodes(1));
    url = await release.forward();
    await release.ask(url, QUESTION);
    task = JSON.parse(await release.cli('list', '--url', url, '--json', '--state', 'completed', '--limit', '1')).id;
    stored = await release.cli('get', '--url', url, task);
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

async function isRefused(from: number, to: number): Promise<void> {
  const objects = () => release.kubectl('get', 'all,configmap,pvc', '--output', 'jsonpath={range .items[*]}{.metadata.uid}{end}');
  const found = await objects();
  await assert.rejects(
    release.upgrade(nodes(to)),
    new RegExp(`on ${from} NATS nodes, .* backup and restore .*Nothing was changed`),
  );
  assert.equal(await objects(), found);
}

test('an upgrade from one node to three is refused and keeps the task', options, async () => {
  await isRefused(1, 3);
  assert.equal(await release.cli('get', '--url', url, task), stored);
});

test('a backup moves the log, and the task in it, to three nodes', options, async () => {
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  await release.apply({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'backups' }, spec: claim });
  await release.upgrade({ ...nodes(1), backup: { ...backup, enabled: true } });
  await release.kubectl('create', 'job', '--from', 'cronjob/hopline-backup', 'backup-now');
  await release.kubectl('wait', '--for', 'condition=complete', 'job/backup-now', '--timeout=120s');
  const pod = await release.kubectl('get', 'pods', '--selector', 'job-name=backup-now', '--output', 'name');
  await release.kubectl('delete', 'job/backup-now');
  await release.uninstall();
  await assert.rejects(release.upgrade(nodes(3)), /on 1 NATS nodes/, 'the kept volume is that of one node');
  await release.kubectl('delete', 'pvc', '--selector', 'app.kubernetes.io/component=nats');
  const restore = pod.trim().replace('pod/', '');
  await release.upgrade({ ...nodes(3), relay: { replicas: 0 }, backup: { ...backup, restore } }, undefined, undefined, false);
  await release.kubectl('wait', '--for', 'condition=complete', 'job/hopline-restore', '--timeout=180s');
  await release.upgrade(nodes(3));
  await release.reachable(url);
  assert.equal(await release.cli('get', '--url', url, task), stored);
});

test('an upgrade from three nodes to one is refused', options, () => isRefused(3, 1));

test('three nodes become five under load without losing text, and an upgrade back to three is refused', options, async () => {
  const load = await Load.start(release, { name: 'five', image: await release.image(), workers: 2 });
  await load.complete(2);
  await release.upgrade(nodes(5));
  await release.rolledOut();
  await load.complete(4);
  checkAnswers('NATS nodes 3, 5', await load.stop());
  assert.equal(await release.cli('get', '--url', url, task), stored);
  await isRefused(5, 3);
});
