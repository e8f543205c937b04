import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@hopline/local-cluster';
import { writeTargets } from '../../../infra/observe/scrape-targets.ts';
import { type Firing, firingsOf } from './alerts.ts';
import { proxyApi } from './port-forward.ts';

const PROMETHEUS = process.env.PROMETHEUS ?? 'prometheus';
/** The rules that the chart installs, unchanged. */
const RULES = fileURLToPath(new URL('../../../infra/helm/hopline/rules/*.yaml', import.meta.url));
const SCRAPE_SECONDS = 15;
const REFRESH_MS = 3_000;
const START_MS_MAX = 60_000;
const TRIES = 4;

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

/** Why no alert can be evaluated here. */
export function prometheusMissing(): string | undefined {
  return (
    spawnSync(PROMETHEUS, ['--version']).error &&
    'not evaluated, because no prometheus is on PATH (Debian: apt install prometheus)'
  );
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
  const config = {
    global: { scrape_interval: `${SCRAPE_SECONDS}s`, evaluation_interval: `${SCRAPE_SECONDS}s` },
    rule_files: [RULES],
    scrape_configs: [
      {
        job_name: `hopline/${namespace}/hopline`,
        file_sd_configs: [{ files: [targets] }],
      },
    ],
  };
  const file = join(folder, 'prometheus.json');
  writeFileSync(file, JSON.stringify(config));
  const port = await freePort();
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=warn',
  ];
  const child = spawn(PROMETHEUS, args, { stdio: 'ignore', detached: true });
  const exited = once(child, 'exit');
  stack.defer(async () => {
    child.kill();
    await exited;
  });
  const url = `http://127.0.0.1:${port}`;
  const isReady = async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true;
  for (const endsAt = Date.now() + START_MS_MAX; !(await isReady()); await sleep(200)) {
    if (Date.now() > endsAt || child.exitCode !== null) throw new Error('Prometheus did not start');
  }
  const ask = async (path: string): Promise<never[]> => {
    for (let left = TRIES; ; left -= 1) {
      try {
        const response = await fetch(`${url}/api/v1/${path}`);
        if (response.status !== 200) throw new Error(await response.text());
        return ((await response.json()) as { data: { result: never[] } }).data.result;
      } catch (error) {
        if (left === 1) throw error;
        await sleep(1_000);
      }
    }
  };
  const query = `query=${encodeURIComponent('ALERTS{alertstate="firing"}')}`;
  return {
    now: async () => {
      const firing: { metric: { alertname: string } }[] = await ask(`query?${query}`);
      return [...new Set(firing.map(({ metric }) => metric.alertname))];
    },
    since: async startMs => {
      const range = `start=${startMs / 1_000}&end=${Date.now() / 1_000}&step=${SCRAPE_SECONDS}`;
      return firingsOf(await ask(`query_range?${query}&${range}`), SCRAPE_SECONDS * 1_000);
    },
  };
}
