import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { FORMAT } from '../../packages/log-jetstream/src/layouts.ts';
import { CHART, type Manifest, manifestsOf, renderChart, skip } from './rendered-chart.ts';
import { upgradeOver } from './upgrade-over.ts';

const LOG_RECORD = '/api/v1/namespaces/default/configmaps/hopline-log';

function natsSet(spec: object): Record<string, object> {
  const path = '/apis/apps/v1/namespaces/default/statefulsets/hopline-nats';
  return { [path]: { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'hopline-nats' }, spec } };
}

/** The volume claims of the given number of nodes, without a StatefulSet, as an uninstall leaves them. */
function natsClaims(nodes: number): Record<string, object> {
  const claims = Array.from({ length: nodes }, (_, node) => `data-hopline-nats-${node}`);
  const of = (name: string) => ({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name } });
  return Object.fromEntries(claims.map(name => [`/api/v1/namespaces/default/persistentvolumeclaims/${name}`, of(name)]));
}

test('an upgrade over a log of another format or with other shards is refused before anything is applied', { skip }, async () => {
  const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  assert.equal(chart.annotations['hopline/log-format'], `${FORMAT}`);
  const recorded = { format: `${FORMAT}`, shards: '16', prefix: '', url: '' };
  const record = (data: Record<string, string>) => ({
    [LOG_RECORD]: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'hopline-log' }, data },
  });
  for (const compatible of [{}, record(recorded)]) assert.match(await upgradeOver(compatible), /kind: Deployment/);
  const refused = /the log of this release has format 2, and version \S+ needs format 1: .*Nothing was changed/;
  assert.match(await upgradeOver(record({ ...recorded, format: '2' })), refused);
  assert.match(
    await upgradeOver(record(recorded), 'shards=32'),
    /shards: the log of this release has 16 shards.*Nothing was changed/,
  );
  // Without `shards` the log keeps its number of shards, and so does the record.
  const kept = await upgradeOver(record(recorded));
  assert.match(kept, /\n {2}shards: "16"\n/);
  assert.doesNotMatch(kept, /name: HOPLINE_SHARDS\n/);
  assert.match(await upgradeOver(record({ ...recorded, layouts: '' }), 'relay.replicas=17'), /17 relays would share 16 shards/);
  assert.match(await upgradeOver({}), /\n {2}shards: ""\n/);
  assert.match(await upgradeOver(record({ ...recorded, shards: '' }), 'shards=64'), /name: HOPLINE_SHARDS\n\s+value: "64"/);
  assert.match(
    await upgradeOver(record(recorded), 'streamGroups=4'),
    /streamGroups: the log of this release has 1 stream groups.*Nothing was changed/,
  );
  assert.match(await upgradeOver(record({ ...recorded, streamGroups: '4' }), 'streamGroups=4'), /kind: Deployment/);
  const withLayout = ['layouts[0].shards=64', 'layouts[0].streamGroups=4'];
  assert.match(
    await upgradeOver(record(recorded), ...withLayout),
    /layouts: the release has a version that knows only one layout: upgrade it .* without layouts first. Nothing was changed/,
  );
  assert.match(
    await upgradeOver(record({ ...recorded, layouts: '' }), ...withLayout),
    /name: HOPLINE_LAYOUTS\n\s+value: "64\/4"/,
  );
  assert.match(await upgradeOver(record({ ...recorded, layouts: '64/4' }), ...withLayout), /layouts: "64\/4"/);
  for (const changed of ['32/4', '64/40', '64/4,8/1'])
    assert.match(
      await upgradeOver(record({ ...recorded, layouts: changed }), ...withLayout),
      /layouts: the log of this release has the layouts .*, which are never changed or removed.*Nothing was changed/,
    );
  // Another prefix or server means another log.
  const another = ['shards=32', 'settings.HOPLINE_PREFIX=blue'];
  assert.match(await upgradeOver(record({ ...recorded, format: '2' }), ...another), /prefix: "blue"/);
  const server = ['nats.enabled=false', 'nats.url=nats://other:4222', 'settings.HOPLINE_REPLICAS=3'];
  assert.match(await upgradeOver(record({ ...recorded, format: '2' }), ...server), /url: "nats:\/\/other:4222"/);
});

test('an upgrade that would resize the volumes of NATS is refused before anything is applied', { skip }, async () => {
  const claim = (storage: string) => ({ spec: { resources: { requests: { storage } } } });
  const nats = (storage: string) => natsSet({ replicas: 3, volumeClaimTemplates: [claim(storage)] });
  assert.match(await upgradeOver(nats('10Gi'), 'nats.storage.size=10240Mi'), /kind: Deployment/);
  const refused = /nats\.storage\.size: the volumes of this release have 10Gi, .*Nothing was changed/;
  assert.match(await upgradeOver(nats('10Gi'), 'nats.storage.size=20Gi'), refused);
});

test('an upgrade that would change the storage class of the volumes of NATS is refused before anything is applied', {
  skip,
}, async () => {
  const nats = (storageClassName?: string) => {
    const spec = { storageClassName, resources: { requests: { storage: '10Gi' } } };
    return natsSet({ replicas: 3, volumeClaimTemplates: [{ spec }] });
  };
  assert.match(await upgradeOver(nats('fast'), 'nats.storage.className=fast'), /kind: Deployment/);
  assert.match(await upgradeOver(nats()), /kind: Deployment/);
  const refused = /nats\.storage\.className: the volumes of this release have the class "fast", .*Nothing was changed/;
  assert.match(await upgradeOver(nats('fast')), refused);
  assert.match(await upgradeOver(nats(), 'nats.storage.className=fast'), /have the class "", .*Nothing was changed/);
});

test('an upgrade that would rename NATS, and so begin with an empty one, is refused before anything is applied', {
  skip,
}, async () => {
  const list = (release: string) => {
    const labels = { 'app.kubernetes.io/instance': release, 'app.kubernetes.io/component': 'nats' };
    const metadata = { name: 'hopline-nats', labels, annotations: { 'meta.helm.sh/release-name': release } };
    const items = [{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec: { replicas: 3 } }];
    return { '/apis/apps/v1/namespaces/default/statefulsets': { apiVersion: 'apps/v1', kind: 'StatefulSetList', items } };
  };
  for (const value of ['fullnameOverride=mine', 'nameOverride=mine'])
    assert.match(
      await upgradeOver(list('hopline'), value),
      /nameOverride, fullnameOverride: the NATS of this release is hopline-nats, and .* would replace it with \S*mine-nats, .*Nothing was changed/,
    );
  assert.match(await upgradeOver(list('another'), 'fullnameOverride=mine'), /kind: Deployment/, 'that of another release');
  const selector = { matchLabels: { 'app.kubernetes.io/name': 'hopline' } };
  const volumeClaimTemplates = [{ spec: { resources: { requests: { storage: '10Gi' } } } }];
  assert.match(
    await upgradeOver(natsSet({ replicas: 3, selector, volumeClaimTemplates }), 'fullnameOverride=hopline', 'nameOverride=mine'),
    /nameOverride: the objects of this release have the name "hopline" in their selectors, .*Nothing was changed/,
  );
});

test('a restore that would change the Job of an earlier one is refused before anything is applied', { skip }, async () => {
  const path = '/apis/batch/v1/namespaces/default/jobs/hopline-restore';
  const containers = [{ name: 'restore', image: 'hopline:0.1.0', args: ['restore', '/backup/monday'] }];
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'hopline-restore' },
    spec: { template: { spec: { containers } } },
  };
  const over = (folder: string, tag = '0.1.0') =>
    upgradeOver({ [path]: job }, 'relay.replicas=0', 'backup.existingClaim=a', `backup.restore=${folder}`, `image.tag=${tag}`);
  assert.match(await over('monday'), /kind: Job/);
  const refused =
    /backup\.restore: the Job hopline-restore of an earlier restore \(\/backup\/monday\) exists, .*delete job\/hopline-restore.*Nothing was changed/;
  assert.match(await over('tuesday'), refused);
  assert.match(await over('monday', '0.2.0'), refused, 'a new image changes the Job, too');
});

const NODES = [1, 3, 5];
for (const from of NODES) {
  for (const to of NODES) {
    // A cluster of three accepts two more nodes, because its quorum keeps the streams and moves none of them.
    const isAllowed = from === to || (from === 3 && to === 5);
    test(`${from} to ${to} NATS nodes is ${isAllowed ? 'allowed' : 'refused before anything is applied'}`, { skip }, async () => {
      const volumeClaimTemplates = [{ spec: { resources: { requests: { storage: '10Gi' } } } }];
      const existing = {
        'a StatefulSet': natsSet({ replicas: from, volumeClaimTemplates }),
        'kept volumes': natsClaims(from),
        'a StatefulSet without pods': { ...natsSet({ replicas: 0, volumeClaimTemplates }), ...natsClaims(from) },
      };
      for (const [name, objects] of Object.entries(existing)) {
        const printed = await upgradeOver(objects, `nats.replicas=${to}`);
        if (isAllowed) assert.match(printed, /kind: StatefulSet/, name);
        else
          assert.match(
            printed,
            new RegExp(`nats\\.replicas: .* on ${from} NATS nodes, .* backup and restore .*Nothing was changed`),
            name,
          );
      }
    });
  }
}

/** A copy of the chart with another version. */
function nextVersion(folder: string): string {
  const next = join(folder, 'next');
  cpSync(CHART, next, { recursive: true });
  const chart = readFileSync(join(CHART, 'Chart.yaml'), 'utf8');
  const changed = chart.replace(/^version: .*$/m, 'version: 9.9.9').replace(/^appVersion: .*$/m, 'appVersion: "9.9.9"');
  writeFileSync(join(next, 'Chart.yaml'), changed);
  return next;
}

/** Values that turn on every object whose content is not random. */
const EVERY_OBJECT = [
  'nats.existingSecret=passwords',
  'secretsKey.existingSecret=key',
  'console.enabled=true',
  'backup.enabled=true',
  'backup.existingClaim=backups',
  'httpIngress.enabled=true',
  'podMonitor.enabled=true',
  'prometheusRule.enabled=true',
  'dashboards.enabled=true',
  'relay.autoscaling.enabled=true',
  'pods.serviceAccount.create=true',
];

test('a release that changes only its version changes only the images: a diff shows nothing else', { skip }, t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-chart-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const next = nextVersion(folder);
  const metrics = ['nats.metrics.enabled=true', 'nats.metrics.image.tag=1.0.0'];
  const pinned = [...EVERY_OBJECT, ...metrics, 'image.tag=1.0.0'];
  assert.deepEqual(renderChart(next, pinned), renderChart(CHART, pinned));
  const values = [...EVERY_OBJECT, ...metrics];
  const before = renderChart(CHART, values);
  const after = renderChart(next, values);
  const changed = after.filter((manifest, index) => !isDeepStrictEqual(manifest, before[index]));
  assert.deepEqual(
    [...new Set(changed.map(({ kind, metadata }) => `${kind}/${metadata.name.replace('hopline-', '')}`))].sort(),
    ['CronJob/backup', 'Pod/test', ...SERVICES.map(name => `Deployment/${name}`)].sort(),
    'NATS stays as it is',
  );
  const { version } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  const text = (manifests: readonly Manifest[]) => JSON.stringify(manifests);
  assert.equal(
    text(after).replaceAll('"hopline:9.9.9"', `"hopline:${version}"`).replaceAll('"9.9.9"', `"${version}"`),
    text(before),
  );
});

const SERVICES = ['agent-files', 'agent-guide', 'console', 'ingress', 'notifier', 'relay', 'supervisor'];
const PASSWORDS = '/api/v1/namespaces/default/secrets/hopline-nats';
const WEBHOOK_KEY = '/api/v1/namespaces/default/secrets/hopline-secrets';

/** Pod templates of the rendered Deployments and of NATS, by component. */
function templatesIn(text: string): Record<string, unknown> {
  return Object.fromEntries(
    manifestsOf(text).flatMap(({ kind, metadata, spec }) =>
      kind === 'Deployment' || kind === 'StatefulSet' ? [[metadata.name.replace('hopline-', ''), spec.template]] : [],
    ),
  );
}

test('a changed password or key restarts the pods that read it, and an upgrade that changes none restarts nothing', {
  skip,
}, async () => {
  const installed = await upgradeOver({});
  const secret = (name: string) => manifestsOf(installed).find(one => one.kind === 'Secret' && one.metadata.name === name)!;
  const [passwords, key] = [secret('hopline-nats'), secret('hopline-secrets')];
  const existing = (changes: Record<string, string>, newKey = key.data!.key!) => ({
    [PASSWORDS]: { ...passwords, data: { ...passwords.data, ...changes } },
    [WEBHOOK_KEY]: { ...key, data: { key: newKey } },
  });
  const before = templatesIn(installed);
  const changed = async (objects: Record<string, object>) => {
    const after = templatesIn(await upgradeOver(objects));
    return Object.keys(before)
      .filter(name => !isDeepStrictEqual(before[name], after[name]))
      .sort();
  };
  assert.deepEqual(await changed(existing({})), [], 'the first upgrade finds the Secrets of the installation');
  assert.deepEqual(await changed(existing({ relay: 'cG90aGVy' })), ['nats', 'relay']);
  assert.deepEqual(await changed(existing({ route: 'cG90aGVy' })), ['nats']);
  assert.deepEqual(await changed(existing({}, 'b3RoZXI=')), ['ingress', 'notifier']);
  const { data: _data, ...removed } = passwords;
  const services = SERVICES.filter(name => name !== 'console');
  assert.deepEqual(
    await changed({ ...existing({}), [PASSWORDS]: removed }),
    [...services, 'nats'].sort(),
    'all passwords are new',
  );
});

test('an upgrade keeps the number of pods of an autoscaled service: with Helm 4 a different number conflicts with the autoscaler', {
  skip,
}, async () => {
  const replicasOf = async (live: number) => {
    const path = '/apis/apps/v1/namespaces/default/deployments/hopline-relay';
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'hopline-relay' },
      spec: { replicas: live },
    };
    const text = await upgradeOver({ [path]: deployment }, 'relay.autoscaling.enabled=true');
    const relay = manifestsOf(text).find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'hopline-relay');
    return relay!.spec.replicas;
  };
  assert.deepEqual([await replicasOf(7), await replicasOf(1), await replicasOf(0)], [7, 1, 2]);
});
