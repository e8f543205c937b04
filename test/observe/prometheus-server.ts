import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@hopline/local-cluster';
import { natsMetrics } from '../../infra/observe/nats-metrics.ts';
import type { Cluster } from '../support/cluster/cluster.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';

const PROMETHEUS = process.env.PROMETHEUS ?? 'prometheus';
const isMissing = spawnSync(PROMETHEUS, ['--version']).error !== undefined;
/** For the option `skip` of a test. */
export const withoutPrometheus = isMissing && 'no prometheus on PATH (Debian: apt install prometheus)';

/** The rules that the chart installs, unchanged. */
const RULES = fileURLToPath(new URL('../../infra/helm/hopline/rules/*.yaml', import.meta.url));
const START_MS_MAX = 120_000;

type Sample = { metric: Record<string, string>; value: [number, string] };

type Exemplar = { labels: Record<string, string>; value: string; timestamp: number };

export type Prometheus = {
  query(expr: string): Promise<Sample[]>;
  /** The exemplars of the last hour. */
  exemplars(metric: string): Promise<Exemplar[]>;
};

export type MonitoredNats = { nats: NatsServer; exporterPort: number };

/** A server with a monitoring port, and its metrics as the exporter serves them. Both end with `stack`. */
export async function startMonitoredNats(stack: AsyncDisposableStack): Promise<MonitoredNats> {
  const monitorPort = await freePort();
  const nats = await startNats({ config: `http: "127.0.0.1:${monitorPort}"` });
  stack.defer(() => nats.stop());
  const exporter = createServer((_request, response) => {
    natsMetrics(`http://127.0.0.1:${monitorPort}`).then(
      text => response.setHeader('content-type', 'text/plain; version=0.0.4').end(text),
      () => response.writeHead(503).end(),
    );
  }).listen(0, '127.0.0.1');
  await once(exporter, 'listening');
  stack.defer(() => void exporter.close());
  return { nats, exporterPort: (exporter.address() as AddressInfo).port };
}

/** Prometheus with the shipped rules. Scrapes metrics and evaluates rules every second. Ends with `stack`. */
export async function startPrometheus(
  stack: AsyncDisposableStack,
  { cluster, exporterPort }: { cluster: Cluster; exporterPort: number },
): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-prometheus-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const port = await freePort();
  const targets = cluster.services.map(({ url, spec }) => ({
    targets: [new URL(url).host],
    labels: { instance: spec.instance },
  }));
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [RULES],
    scrape_configs: [
      { job_name: 'hopline', static_configs: targets },
      { job_name: 'nats', static_configs: [{ targets: [`127.0.0.1:${exporterPort}`] }] },
    ],
  };
  const file = join(folder, 'prometheus.json');
  writeFileSync(file, JSON.stringify(config));
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--enable-feature=exemplar-storage',
  ];
  const child = spawn(PROMETHEUS, args, { stdio: 'ignore' });
  const exited = once(child, 'exit');
  // An interrupted test does not run `defer`.
  process.once('exit', () => child.kill('SIGKILL'));
  stack.defer(async () => {
    child.kill();
    await exited;
  });
  const url = `http://127.0.0.1:${port}`;
  const isReady = async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true;
  for (const endsAt = Date.now() + START_MS_MAX; !(await isReady()); await sleep(200)) {
    if (Date.now() > endsAt || child.exitCode !== null) throw new Error('Prometheus did not start');
  }
  const ask = async (path: string, expr: string): Promise<unknown> => {
    const response = await fetch(`${url}/api/v1/${path}query=${encodeURIComponent(expr)}`);
    if (response.status !== 200) throw new Error(`${expr}: ${await response.text()}`);
    return ((await response.json()) as { data: unknown }).data;
  };
  return {
    query: async expr => ((await ask('query?', expr)) as { result: Sample[] }).result,
    exemplars: async metric => {
      const seconds = Date.now() / 1_000;
      const found = await ask(`query_exemplars?start=${seconds - 3_600}&end=${seconds + 60}&`, metric);
      return (found as { exemplars: Exemplar[] }[]).flatMap(one => one.exemplars);
    },
  };
}
