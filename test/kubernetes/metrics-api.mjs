// Runs in a pod. Serves the resource metrics of pods (metrics.k8s.io), as metrics-server does, from the statistics of the kubelets, for a cluster
// that has no metrics-server. HorizontalPodAutoscalers read them.
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:https';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const GROUP = 'metrics.k8s.io';
const groupVersion = `${GROUP}/v1beta1`;
const resources = [{ name: 'pods', singularName: '', namespaced: true, kind: 'PodMetrics', verbs: ['get', 'list'] }];

async function read(path) {
  const options = {
    ca: readFileSync(`${ACCOUNT}/ca.crt`),
    headers: { authorization: `Bearer ${readFileSync(`${ACCOUNT}/token`, 'utf8')}` },
  };
  const { promise, resolve, reject } = Promise.withResolvers();
  request(`https://kubernetes.default.svc${path}`, options, async response => {
    let text = '';
    for await (const part of response) text += part;
    if (response.statusCode === 200) resolve(JSON.parse(text));
    else reject(new Error(`${path}: ${response.statusCode} ${text.slice(0, 200)}`));
  })
    .on('error', reject)
    .end();
  return promise;
}

/** Lists the pods in a namespace that a selector selects. A pod without statistics is left out, as metrics-server leaves out young ones. */
async function podMetrics(namespace, selector) {
  const [{ items: pods }, { items: nodes }] = await Promise.all([
    read(`/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(selector)}`),
    read('/api/v1/nodes'),
  ]);
  const summaries = await Promise.all(nodes.map(({ metadata }) => read(`/api/v1/nodes/${metadata.name}/proxy/stats/summary`)));
  const found = new Map(summaries.flatMap(summary => summary.pods.map(pod => [pod.podRef.uid, pod])));
  const items = pods.flatMap(({ metadata: { name, uid, labels } }) => {
    const containers = (found.get(uid)?.containers ?? []).filter(({ cpu }) => cpu?.usageNanoCores !== undefined);
    if (containers.length === 0) return [];
    return {
      metadata: { name, namespace, labels },
      timestamp: containers[0].cpu.time,
      window: '10s',
      containers: containers.map(({ name: container, cpu, memory }) => ({
        name: container,
        usage: { cpu: `${cpu.usageNanoCores}n`, memory: `${memory?.workingSetBytes ?? 0}` },
      })),
    };
  });
  return { kind: 'PodMetricsList', apiVersion: groupVersion, metadata: {}, items };
}

async function answer(url) {
  if (url.pathname === `/apis/${groupVersion}`) return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
  const [, namespace] = /^\/apis\/metrics\.k8s\.io\/v1beta1\/namespaces\/([^/]+)\/pods$/.exec(url.pathname) ?? [];
  return namespace && podMetrics(namespace, url.searchParams.get('labelSelector') ?? '');
}

createServer({ cert: process.env.CERT, key: process.env.KEY }, async ({ url }, response) => {
  const send = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  try {
    const found = await answer(new URL(url, 'https://pod'));
    send(found ? 200 : 404, found ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 404 });
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    send(500, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 500, message: error.message });
  }
}).listen(8443);
