import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { template } from './rendered-chart.ts';

/** The output of helm for an upgrade, in a cluster that has these objects of the previous release, by their paths. */
export async function upgradeOver(objects: Record<string, object>, ...values: string[]): Promise<string> {
  const kinds = Object.entries({
    v1: ['ConfigMap', 'Secret', 'Service', 'Pod', 'PersistentVolumeClaim'],
    'apps/v1': ['Deployment', 'StatefulSet'],
    'batch/v1': ['Job'],
    'autoscaling/v2': ['HorizontalPodAutoscaler'],
    'policy/v1': ['PodDisruptionBudget'],
    'networking.k8s.io/v1': ['NetworkPolicy'],
  });
  const resources = kinds.map(([groupVersion, names]) => {
    const plural = (kind: string) => `${kind.toLowerCase().replace(/y$/, 'ie')}s`;
    const list = names.map(kind => ({ kind, name: plural(kind), namespaced: true, verbs: ['get'] }));
    const path = groupVersion === 'v1' ? '/api/v1' : `/apis/${groupVersion}`;
    return [path, { kind: 'APIResourceList', groupVersion, resources: list }];
  });
  const groups = kinds.slice(1).map(([groupVersion]) => {
    const [name, version] = groupVersion.split('/');
    return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
  });
  const lists: Record<string, object> = {
    '/version': { major: '1', minor: '34', gitVersion: 'v1.34.0' },
    '/api': { kind: 'APIVersions', versions: ['v1'] },
    '/apis': { kind: 'APIGroupList', groups },
    ...Object.fromEntries(resources),
    ...objects,
  };
  const server = createServer(({ url = '' }, response) => {
    const found = lists[url.split('?')[0]!];
    const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(found ?? missing));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'hopline-chart-'));
  try {
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const args = [
      ...template(values),
      '--dry-run=server',
      '--is-upgrade',
      '--disable-openapi-validation',
      '--kube-apiserver',
      address,
    ];
    const env = { ...process.env, KUBECONFIG: '', HOME: folder };
    return await promisify(execFile)('helm', args, { env, maxBuffer: 1 << 26 }).then(
      ({ stdout }) => stdout,
      (error: { stderr: string }) => error.stderr,
    );
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
}
