import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Cluster } from '../support/cluster/cluster.ts';
import { type BenchCluster, startCluster } from './bench-cluster.ts';
import { type CpuSeconds, type Pids, totalOf, withCpu } from './measure/process-usage.ts';
import { spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import { pacedQuestion } from './paced-agent.ts';
import type { Finding, Question, Size } from './question.ts';
import { STREAMED } from './tokens.ts';

const AGENT = { name: 'paced', adapter: 'module', path: fileURLToPath(new URL('paced-agent.ts', import.meta.url)) };
/**
 * The tasks that warm up the processes. They are brief but number thousands, because code that runs a few times per task is compiled only
 * then, as in a cluster that has run for an hour.
 */
const BRIEF = { tokens: 8, perSecond: 10_000, atOnce: 8 };
const SLOTS = { HOPLINE_SLOTS: '1024' };
const OFF = { OTEL_METRICS_EXPORTER: 'none', OTEL_TRACES_EXPORTER: 'none' };
const RATIO_MAX = 1.05;
/** Time between two tasks of a side; those of the other side start halfway between. */
const STAGGER_MS = 100;
/** Exports after the last answer also count, because spans are sent within SPAN_DELAY_MS. */
const EXPORTED_MS = 1_200;

/**
 * `clusters`: the number of clusters of each side. After `warmUps` runs and `briefTasks`, each cluster forms two pairs with each cluster of
 * the other side.
 */
type Plan = {
  clusters: number;
  warmUps: number;
  briefTasks: number;
  /** Reads of the metrics before the measurement, because their code runs seldom too. 240 are an hour of scrapes. */
  scrapes: number;
  tasks: number;
  tokens: number;
  perSecond: number;
};
/** The pace of a model, as in `load`. */
const LOAD = { tasks: 60, tokens: 400, perSecond: 50 };
const PLANS: Record<Size, Plan> = {
  full: { clusters: 4, warmUps: 2, briefTasks: 2_000, scrapes: 240, ...LOAD },
  quick: { clusters: 2, warmUps: 1, briefTasks: 1_000, scrapes: 120, ...LOAD },
  tiny: { clusters: 1, warmUps: 0, briefTasks: 2, scrapes: 1, tasks: 2, tokens: 50, perSecond: 200 },
};

type Cpu = CpuSeconds | undefined;
type Pair = { off: Cpu; on: Cpu };
type Side = { bench: BenchCluster; services: Pids; readsMetrics: boolean };

/**
 * What do traces and metrics cost? The tasks of a pair go alternately to a cluster without them and to one with them, so that other load on
 * the machine affects both alike: with two equal sides, the ratio had a standard deviation of 0.1 if they ran in turn and of 0.05 if they
 * ran alternately. One side exports every span, and its metrics are read once in each run. Two clusters of equal processes differ by some
 * hundredths for as long as they live. So each side has several clusters, and each cluster is paired twice with each cluster of the other
 * side: once it gets the first task, and once the second.
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
    const start = async (env: Record<string, string>, readsMetrics: boolean): Promise<Side> => {
      const bench = stack.use(await startCluster({ agents: [AGENT], env: { ...SLOTS, ...env } }));
      const { 'nats-server': _, ...services } = bench.pids;
      return { bench, services, readsMetrics };
    };
    const { port } = collector.address() as AddressInfo;
    const exported = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
    const [off, on]: [Side[], Side[]] = [[], []];
    for (let cluster = 0; cluster < plan.clusters; cluster++) {
      off.push(await start(OFF, false));
      on.push(await start(exported, true));
    }
    // Both sides warm up together, because nothing is measured yet. Otherwise code that seldom runs, such as that of spans, would not be
    // compiled.
    const warmUp = async (side: Side) => {
      const { client, cluster } = side.bench;
      const { tokens, perSecond, atOnce } = BRIEF;
      const brief = { url: cluster.url, text: pacedQuestion(tokens, perSecond), artifact: STREAMED, tokens };
      await client.call('runs', { ...brief, count: plan.briefTasks, atOnce });
      for (let scrape = 0; side.readsMetrics && scrape < plan.scrapes; scrape++) await readMetrics(cluster);
      for (let warm = 0; warm < plan.warmUps; warm++) await run(side, plan);
    };
    await Promise.all([...off, ...on].map(warmUp));
    const pairs: Pair[] = [];
    for (let round = 0; round < 2 * plan.clusters; round++) {
      for (const [index, without] of off.entries()) {
        const withAll = on[(index + round) % on.length]!;
        const isOffFirst = (index + Math.floor(round / on.length)) % 2 === 0;
        const [first, second] = isOffFirst ? [without, withAll] : [withAll, without];
        const ofLater = delay(STAGGER_MS / 2).then(() => run(second, plan));
        const [ofFirst, ofSecond] = await Promise.all([run(first, plan), ofLater]);
        pairs.push(isOffFirst ? { off: ofFirst, on: ofSecond } : { off: ofSecond, on: ofFirst });
      }
    }
    return [finding(plan, pairs)];
  },
};

async function run({ bench, services, readsMetrics }: Side, { tasks, tokens, perSecond }: Plan): Promise<Cpu> {
  const { client, cluster } = bench;
  const { result, cpu } = await withCpu(services, async () => {
    const question = { url: cluster.url, text: pacedQuestion(tokens, perSecond), artifact: STREAMED };
    await client.call('ask', { ...question, count: tasks, staggerMs: STAGGER_MS });
    if (readsMetrics) await readMetrics(cluster);
    const reports = await client.call('answers', { tokens });
    await delay(EXPORTED_MS);
    return reports;
  });
  const lost = result.filter(({ intact }) => !intact).length;
  if (lost > 0) throw new Error(`${lost} of ${tasks} texts did not arrive complete`);
  return cpu;
}

async function readMetrics({ services }: Cluster): Promise<void> {
  await Promise.all(services.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
}

function finding({ tasks, tokens, perSecond, clusters }: Plan, measured: Pair[]): Finding {
  const sides = `${clusters} clusters without and ${clusters} with traces and metrics`;
  const title = `telemetry: ${tasks} tasks of ${tokens} tokens at ${perSecond}/s, ${measured.length} pairs of runs, ${sides}`;
  const name = 'CPU of all services with traces and metrics, over without';
  const pairs = measured.flatMap(({ off, on }) => (off === undefined || on === undefined ? [] : [{ off, on }]));
  const wanted = { atMost: RATIO_MAX };
  const table = { columns: ['CPU milliseconds per task', ...SPREAD_COLUMNS], rows: [] as string[][] };
  if (pairs.length < measured.length) {
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
