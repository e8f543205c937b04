import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort } from '@hopline/local-cluster';
import { natsMetrics } from '../../infra/observe/nats-metrics.ts';
import type { Cluster } from '../support/cluster/cluster.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';
import { prometheusMissing, startPrometheus as startServer } from '../support/prometheus.ts';

/** For the option `skip` of a test. */
export const withoutPrometheus = prometheusMissing ?? false;

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

/** Prometheus with the shipped rules, which looks every second, for a cluster and its NATS. Ends with `stack`. */
export async function startPrometheus(
  stack: AsyncDisposableStack,
  { cluster, exporterPort }: { cluster: Cluster; exporterPort: number },
): Promise<Prometheus> {
  const targets = cluster.services.map(({ url, spec }) => ({
    targets: [new URL(url).host],
    labels: { instance: spec.instance },
  }));
  const scrape = [
    { job_name: 'hopline', static_configs: targets },
    { job_name: 'nats', static_configs: [{ targets: [`127.0.0.1:${exporterPort}`] }] },
  ];
  const ask = await startServer(stack, { scrape, seconds: 1, features: ['exemplar-storage'] });
  return {
    query: async expr => ((await ask(`query?query=${encodeURIComponent(expr)}`)) as { result: Sample[] }).result,
    exemplars: async metric => {
      const seconds = Date.now() / 1_000;
      const times = `start=${seconds - 3_600}&end=${seconds + 60}`;
      const found = await ask(`query_exemplars?${times}&query=${encodeURIComponent(metric)}`);
      return (found as { exemplars: Exemplar[] }[]).flatMap(one => one.exemplars);
    },
  };
}
