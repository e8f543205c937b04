import { readFileSync } from 'node:fs';
import { createAuthority, DAY_MS } from '../integration/tls/certificates.ts';
import type { Release } from './release.ts';

const SCRIPT = readFileSync(new URL('metrics-api.mjs', import.meta.url), 'utf8');
const NAME = 'metrics-api';
const API = 'v1beta1.metrics.k8s.io';
const PORT = 8443;
const READY_SECONDS = 60;

/** Gives a cluster without metrics-server the resource metrics of pods that HorizontalPodAutoscalers read. Undone by `stack`. */
export async function serveMetrics(stack: AsyncDisposableStack, release: Release): Promise<void> {
  if ((await release.kubectl('get', 'apiservice', API, '--ignore-not-found')) !== '') return;
  const { namespace } = release;
  const host = `${NAME}.${namespace}.svc`;
  const { cert, key } = createAuthority('Authority of the metrics', DAY_MS).issue(NAME, [host]);
  const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace }];
  const clusterObject = { metadata: { name: `${namespace}-${NAME}` } };
  const group = 'rbac.authorization.k8s.io';
  const container = {
    name: NAME,
    image: await release.image(),
    imagePullPolicy: 'IfNotPresent',
    command: ['/nodejs/bin/node', '--input-type=module', '--eval', SCRIPT],
    env: [
      { name: 'CERT', value: cert },
      { name: 'KEY', value: key },
    ],
    readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  };
  const objects = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME } },
    {
      apiVersion: `${group}/v1`,
      kind: 'ClusterRole',
      ...clusterObject,
      rules: [{ apiGroups: [''], resources: ['pods', 'nodes', 'nodes/proxy', 'nodes/stats'], verbs: ['get', 'list'] }],
    },
    {
      apiVersion: `${group}/v1`,
      kind: 'ClusterRoleBinding',
      ...clusterObject,
      roleRef: { apiGroup: group, kind: 'ClusterRole', ...clusterObject.metadata },
      subjects,
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: NAME, labels: { app: NAME } },
      spec: {
        serviceAccountName: NAME,
        securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [container],
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: NAME },
      spec: { selector: { app: NAME }, ports: [{ port: 443, targetPort: PORT }] },
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: API },
      spec: {
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
        service: { name: NAME, namespace },
      },
    },
  ];
  stack.defer(async () => {
    await release.kubectl('delete', 'apiservice', API, '--ignore-not-found');
    await release.kubectl('delete', 'clusterrole,clusterrolebinding', clusterObject.metadata.name, '--ignore-not-found');
  });
  for (const object of objects) await release.apply(object);
  await release.kubectl('wait', '--for=condition=Available', `apiservice/${API}`, `--timeout=${READY_SECONDS}s`);
}
