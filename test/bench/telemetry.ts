import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BenchCluster, startCluster } from './bench-cluster.ts';
import { type CpuSeconds, type Pids, totalOf, withCpu } from './measure/process-usage.ts';
import { interleave } from './measure/rounds.ts';
import { spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { RecordingFolder } from './recording-file.ts';
import { STREAMED } from './tokens.ts';

const AGENT = 'reader';
const SLOTS = { HOPLINE_SLOTS: '1024' };
const OFF = { OTEL_METRICS_EXPORTER: 'none', OTEL_TRACES_EXPORTER: 'none' };
const RATIO_MAX = 1.05;
/** Users do not send in the same millisecond. */
const STAGGER_MS = 10;

type Plan = { rounds: number; warmUps: number; tasks: number; tokens: number; perSecond: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 12, warmUps: 4, tasks: 40, tokens: 400, perSecond: 200 },
  quick: { rounds: 3, warmUps: 2, tasks: 40, tokens: 400, perSecond: 200 },
  tiny: { rounds: 1, warmUps: 0, tasks: 2, tokens: 50, perSecond: 200 },
};

type Cpu = CpuSeconds | undefined;
type Side = { bench: BenchCluster; services: Pids; readsMetrics: boolean };

/**
 * What do traces and metrics cost? Two clusters of the same processes take the same tasks in turn, off on on off, so that neither is always
 * the first of a pair. One exports every span, and its metrics are read once in each run.
 */
export const telemetry: Question = {
  name: 'telemetry',
  async ask(size) {
    const plan = PLANS[size];
    await using stack = new AsyncDisposableStack();
    const collector = createServer((request, response) => request.resume().once('end', () => response.writeHead(200).end()));
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    stack.defer(() => {
      collector.closeAllConnections();
      collector.close();
    });
    const folder = stack.use(new RecordingFolder());
    const agents = [{ name: AGENT, adapter: 'recording', path: folder.write(plan.tokens), pace: plan.perSecond }];
    const start = async (env: Record<string, string>, readsMetrics: boolean): Promise<Side> => {
      const bench = stack.use(await startCluster({ agents, env: { ...SLOTS, ...env } }));
      const { 'nats-server': _, ...services } = bench.pids;
      return { bench, services, readsMetrics };
    };
    const off = await start(OFF, false);
    const { port } = collector.address() as AddressInfo;
    const on = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` }, true);
    const [withOut, withAll] = [() => run(off, plan), () => run(on, plan)];
    await interleave(plan.warmUps, { withOut, withAll });
    const found = await interleave(plan.rounds, { a: withOut, b: withAll, c: withAll, d: withOut });
    return [finding(plan, [...found.a, ...found.d], [...found.b, ...found.c])];
  },
};

async function run({ bench, services, readsMetrics }: Side, { tasks, tokens }: Plan): Promise<Cpu> {
  const { client, cluster } = bench;
  const { result, cpu } = await withCpu(services, async () => {
    await client.call('ask', { url: cluster.url, text: 'begin', artifact: STREAMED, count: tasks, staggerMs: STAGGER_MS });
    if (readsMetrics) await Promise.all(cluster.services.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
    return client.call('answers', { tokens });
  });
  const lost = result.filter(({ intact }) => !intact).length;
  if (lost > 0) throw new Error(`${lost} of ${tasks} texts did not arrive complete`);
  return cpu;
}

function finding({ tasks, tokens, perSecond, rounds }: Plan, off: Cpu[], on: Cpu[]): Finding {
  const title = `telemetry: ${tasks} tasks of ${tokens} tokens at ${perSecond}/s, ${2 * rounds} pairs of runs without and with traces and metrics`;
  const name = 'CPU of all services with traces and metrics, over without';
  const pairs = off.flatMap((one, index) => {
    const other = on[index];
    return one === undefined || other === undefined ? [] : [{ off: one, on: other }];
  });
  const wanted = { atMost: RATIO_MAX };
  const table = { columns: ['CPU milliseconds per task', ...SPREAD_COLUMNS], rows: [] as string[][] };
  if (pairs.length < off.length) {
    return { title, table, notes: ['unavailable on this platform'], targets: [{ name, wanted, found: undefined }] };
  }
  const row = (label: string, values: number[]) => table.rows.push([label, ...spreadCells(spreadOf(values))]);
  const perTask = (seconds: number) => (1_000 * seconds) / tasks;
  for (const service of Object.keys(pairs[0]!.off)) {
    row(
      `${service}, without`,
      pairs.map(pair => perTask(pair.off[service]!)),
    );
    row(
      `${service}, with`,
      pairs.map(pair => perTask(pair.on[service]!)),
    );
  }
  row(
    'all services, without',
    pairs.map(pair => perTask(totalOf(pair.off))),
  );
  row(
    'all services, with',
    pairs.map(pair => perTask(totalOf(pair.on))),
  );
  const ratio = spreadOf(pairs.map(pair => totalOf(pair.on) / totalOf(pair.off)));
  table.rows.push(['with over without, of a pair', ...spreadCells(ratio)]);
  return {
    title,
    table,
    notes: ['the ratio is formed within a pair; every span is exported, and /metrics of every service is read once a run'],
    targets: [{ name, wanted, found: ratio }],
  };
}
