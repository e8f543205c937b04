import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeTargets } from '../../../infra/observe/scrape-targets.ts';
import { startPrometheus } from '../../support/prometheus.ts';
import { type Firing, firingsOf } from './alerts.ts';
import { proxyApi } from './port-forward.ts';

const SCRAPE_SECONDS = 15;
const REFRESH_MS = 3_000;

export type WatchedAlerts = {
  /** Names of the alerts that fire now. */
  now(): Promise<string[]>;
  since(startMs: number): Promise<Firing[]>;
};

type PodList = {
  items: {
    metadata: { name: string; namespace: string };
    spec: { containers: { ports?: { name?: string; containerPort: number }[] }[] };
    status: { phase: string; podIP?: string };
  }[];
};

type Target = { targets: string[]; labels: { instance: string; __metrics_path__: string } };

/** The ports with metrics, each read through the API at `address`. */
function targetsOf({ items }: PodList, address: string): Target[] {
  const running = items.filter(({ status }) => status.podIP !== undefined && !/Succeeded|Failed/.test(status.phase));
  return running.flatMap(({ metadata: { name, namespace }, spec }) => {
    const ports = spec.containers
      .flatMap(container => container.ports ?? [])
      .filter(port => /^(probes|metrics)$/.test(port.name ?? ''));
    return ports.map(port => ({
      targets: [address],
      labels: {
        instance: `${name}:${port.name}`,
        __metrics_path__: `/api/v1/namespaces/${namespace}/pods/${name}:${port.containerPort}/proxy/metrics`,
      },
    }));
  });
}

/** Prometheus on this machine, which finds the pods of a namespace in the API of the cluster, as a PodMonitor of the chart selects them, and reads their metrics through it. */
export async function watchAlerts(stack: AsyncDisposableStack, namespace: string): Promise<WatchedAlerts> {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-traffic-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const api = `127.0.0.1:${await proxyApi(stack)}`;
  const targets = join(folder, 'targets.json');
  const refresh = async () => {
    const response = await fetch(`http://${api}/api/v1/namespaces/${namespace}/pods`);
    if (response.ok) writeTargets(targets, targetsOf((await response.json()) as PodList, api));
  };
  await refresh();
  // A pod that cannot be listed now can be listed a moment later.
  const timer = setInterval(() => void refresh().catch(() => {}), REFRESH_MS);
  stack.defer(() => clearInterval(timer));
  const scrape = [{ job_name: `hopline/${namespace}/hopline`, file_sd_configs: [{ files: [targets] }] }];
  const ask = await startPrometheus(stack, { scrape, seconds: SCRAPE_SECONDS });
  const resultOf = async (path: string) => ((await ask(path)) as { result: never[] }).result;
  const query = `query=${encodeURIComponent('ALERTS{alertstate="firing"}')}`;
  return {
    now: async () => {
      const firing: { metric: { alertname: string } }[] = await resultOf(`query?${query}`);
      return [...new Set(firing.map(({ metric }) => metric.alertname))];
    },
    since: async startMs => {
      const range = `start=${startMs / 1_000}&end=${Date.now() / 1_000}&step=${SCRAPE_SECONDS}`;
      return firingsOf(await resultOf(`query_range?${query}&${range}`), SCRAPE_SECONDS * 1_000);
    },
  };
}
