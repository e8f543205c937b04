import { hash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { Cluster } from '../support/cluster/cluster.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';
import { killAtExit } from './measure/kill-at-exit.ts';
import { LoadProcess } from './measure/load-process.ts';
import { children, cpuSecondsOf, residentKibOf } from './measure/process-usage.ts';
import { figure } from './measure/table.ts';
import type { Target } from './measure/targets.ts';
import type { Finding, Question, Size } from './question.ts';
import type { RemoteServerMethods } from './remote-server/main.ts';
import { Caller } from './stored/caller.ts';
import type { LoaderMethods } from './stored/loader.ts';
import {
  checkPages,
  coldRequests,
  firstTexts,
  measureLists,
  type Population,
  type Restart,
  restarted,
  resumes,
  type Times,
  takeover,
  webhooks,
} from './stored/measure-stored.ts';
import { CALLER, CALLER_TASKS, COPIED_CALLER, LARGE_CALLER } from './stored/stored-population.ts';

/** `times`: how often each list and each question is asked. */
type Plan = { sizes: number[]; times: number };
const PLANS: Record<Size, Plan> = {
  full: { sizes: [1_000, 10_000, 100_000, 1_000_000], times: 100 },
  quick: { sizes: [1_000, 100_000], times: 50 },
  tiny: { sizes: [1_000], times: 3 },
};

/** Room for a million tasks and their entries. Those of the default keep 350,000. */
const BYTES = { HOPLINE_TASKS_BYTES_MAX: `${16 * 1024 ** 3}`, HOPLINE_BUCKET_BYTES_MAX: `${1024 ** 3}` };
/** On disk for each task: facts, entry, row. */
const TASK_BYTES_MAX = 14_000;
const FREE_BYTES_MIN = 2 * 1024 ** 3;

const PAGE_P99_MS_MAX = 50;
const REQUESTS_MAX = 3;
/** A figure that does not depend on the number of tasks varies by at most this factor between two sizes. */
const FLAT_FACTOR = 2;

export type Stored = {
  tasks: number;
  fillSeconds: number;
  diskBytes: number;
  lists: Record<string, Times>;
  requests: string[];
  consumers: number;
  restarts: Record<string, Restart>;
  nats: { residentMib: number; restart: Restart };
  takeoverMs: number;
  firstText: Times;
  resume: Times;
  webhook: Times;
};

/** Does anything grow with the number of tasks that the log stores? A cluster for each number, filled with copies of one of its ended tasks. */
export const stored: Question = {
  name: 'stored',
  onlyIfNamed: true,
  ask: size => askStored(PLANS[size]),
};

export async function askStored({ sizes, times }: Plan): Promise<Finding[]> {
  if (residentKibOf(process.pid) === undefined)
    return [{ title: 'stored', table: { columns: [], rows: [] }, notes: ['unavailable on this platform'] }];
  const found: Stored[] = [];
  for (const tasks of sizes) found.push(await withTasks(tasks, times));
  return [lists(found), restartsOf(found), work(found)];
}

async function withTasks(tasks: number, times: number): Promise<Stored> {
  const dir = mkdtempSync(join(tmpdir(), 'hopline-stored-'));
  const { bavail, bsize } = statfsSync(dir);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  if (bavail * bsize < tasks * TASK_BYTES_MAX + FREE_BYTES_MIN)
    throw new Error(`${dir}: ${tasks} tasks need ${figure((tasks * TASK_BYTES_MAX) / 1024 ** 3)} GiB of disk`);
  const nats = await startNats({ dir });
  stack.defer(() => nats.stop());
  const agent = stack.use(new LoadProcess<RemoteServerMethods>(new URL('remote-server/main.ts', import.meta.url)));
  const url = await agent.call('listen', { wire: 'a2a-1.0' });
  const keys = [COPIED_CALLER, CALLER, LARGE_CALLER, 'stranger'].map(subject => ({ subject, key: `api-key-of-${subject}` }));
  const keysFile = join(dir, 'keys.json');
  writeFileSync(keysFile, JSON.stringify(keys.map(({ subject, key }) => ({ subject, key_sha256: hash('sha256', key) }))));
  const env = {
    ...BYTES,
    HOPLINE_AUTH_API_KEYS_FILE: keysFile,
    HOPLINE_PUSH: 'true',
    HOPLINE_SECRETS_KEY: randomBytes(32).toString('base64'),
    HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
    HOPLINE_WEBHOOK_HTTP: 'true',
  };
  const agents = [{ name: 'stored', adapter: 'a2a', url: `${url}/` }];
  const cluster = stack.use(await Cluster.start({ nats, agents, relays: 2, notifiers: 1, env }));
  for (const { pid } of cluster.services) stack.defer(killAtExit(pid));
  const callerOf = (subject: string) => new Caller(`api-key-of-${subject}`);
  const { population, fillSeconds } = await fill(cluster, callerOf(COPIED_CALLER), tasks);
  const diskBytes = await streamBytes(nats.url);
  const [caller, stranger] = [callerOf(CALLER), callerOf('stranger')];
  for (let n = 0; n < times; n += 1) await stranger.ask(cluster.url);
  // Done before the restarts, so that NATS has been used.
  const takeoverMs = await takeover(cluster, stranger);
  const firstText = await firstTexts(cluster.url, stranger, times);
  const webhook = await webhooks(cluster.url, stranger, Math.min(times, 20));
  const natsRestart = await restartNats(nats, cluster, stranger);
  const [ingress] = cluster.ingresses;
  const restarts: Record<string, Restart> = {};
  await ingress!.kill();
  await ingress!.start();
  // Measured in the first second after the start.
  const { requests, consumers } = await coldRequests(nats.url, () => caller.list(cluster.url));
  const found = await measureLists(cluster.url, caller, population, times);
  await checkPages(cluster.url, caller, population);
  const resume = await resumes(cluster.url, caller, population, times);
  restarts.ingress = await restarted(ingress!, async () => void (await caller.list(cluster.url)));
  restarts.relay = await restarted(cluster.relays[0]!);
  restarts.supervisor = await restarted(cluster.supervisors[0]!);
  restarts['sub-agent'] = await restarted(cluster.agents[0]!);
  restarts.notifier = await restarted(cluster.notifiers[0]!);
  return {
    tasks,
    fillSeconds,
    diskBytes,
    lists: found,
    requests,
    consumers,
    restarts,
    nats: natsRestart,
    takeoverMs,
    firstText,
    resume,
    webhook,
  };
}

async function fill(cluster: Cluster, caller: Caller, total: number): Promise<{ population: Population; fillSeconds: number }> {
  await using loader = new LoadProcess<LoaderMethods>(new URL('stored/loader.ts', import.meta.url), '--max-old-space-size=4096');
  const servers = cluster.nats.url;
  const first = await caller.ask(cluster.url);
  // Placed in the context of another task, because its copies also name their contexts.
  const { taskId } = await caller.ask(cluster.url, { contextId: first.contextId });
  const task = await loader.call('read', { servers, taskId, subject: COPIED_CALLER });
  const untilMs = Date.now();
  const fromMs = performance.now();
  const { firstSeq, records } = await loader.call('fill', { servers, stored: task, total, untilMs });
  return { population: { total, untilMs, firstSeq, records }, fillSeconds: (performance.now() - fromMs) / 1000 };
}

async function streamBytes(servers: string): Promise<number> {
  const nc = await connect({ servers });
  try {
    let bytes = 0;
    for await (const { state } of (await jetstreamManager(nc)).streams.list()) bytes += state.bytes;
    return bytes;
  } finally {
    await nc.close();
  }
}

/** Memory before; after the restart, until a question is answered. */
async function restartNats(nats: NatsServer, cluster: Cluster, caller: Caller): Promise<Stored['nats']> {
  const pidOf = () => children().find(({ program }) => program === 'nats-server')!.pid;
  const residentMib = residentKibOf(pidOf())! / 1024;
  const fromMs = performance.now();
  await nats.restart();
  for (;;) {
    const isAnswered = await caller.ask(cluster.url).then(
      () => true,
      () => false,
    );
    if (isAnswered) break;
    await delay(50);
  }
  const ms = performance.now() - fromMs;
  const pid = pidOf();
  return { residentMib, restart: { ms, cpuSeconds: cpuSecondsOf(pid)!, residentMib: residentKibOf(pid)! / 1024 } };
}

const columnsOf = (what: string, found: readonly Stored[]) => [what, ...found.map(({ tasks }) => tasks.toLocaleString('en-US'))];
const row = (name: string, found: readonly Stored[], of: (one: Stored) => number | string) => [
  name,
  ...found.map(one => {
    const value = of(one);
    return typeof value === 'string' ? value : figure(value);
  }),
];

function lists(found: readonly Stored[]): Finding {
  const [largest] = found.slice(-1) as [Stored];
  const names = Object.keys(largest.lists);
  return {
    title: `stored: lists of a caller with ${CALLER_TASKS} tasks, of an ingress just started, by the number of stored tasks`,
    table: {
      columns: columnsOf('ms', found),
      rows: [
        ...names.flatMap(name => [
          row(`${name}: p50`, found, ({ lists: of }) => of[name]!.p50),
          row(`${name}: p99`, found, ({ lists: of }) => of[name]!.p99),
          row(`${name}: max`, found, ({ lists: of }) => of[name]!.max),
        ]),
        row('requests of the first page to NATS', found, ({ requests }) => requests.length),
        row('consumers', found, ({ consumers }) => consumers),
      ],
    },
    targets: [
      ...names.map(name => ({
        name: `stored: ${name} of a caller, ${largest.tasks.toLocaleString('en-US')} stored tasks, p99 ms`,
        wanted: { atMost: PAGE_P99_MS_MAX },
        found: largest.lists[name]!.p99,
      })),
      {
        name: 'stored: requests to NATS of a cold page',
        wanted: { atMost: REQUESTS_MAX },
        found: Math.max(...found.map(one => one.requests.length)),
      },
      {
        name: 'stored: consumers of a cold page',
        wanted: { atMost: 0 },
        found: Math.max(...found.map(({ consumers }) => consumers)),
      },
    ],
    data: found,
  };
}

function restartsOf(found: readonly Stored[]): Finding {
  const services = Object.keys(found[0]!.restarts);
  return {
    title: 'stored: kill -9 and start of each process, by the number of stored tasks',
    table: {
      columns: columnsOf('', found),
      rows: [
        ...services.flatMap(name => [
          row(`${name}: ms until ready`, found, ({ restarts }) => restarts[name]!.ms),
          row(`${name}: CPU seconds, 2 s later`, found, ({ restarts }) => restarts[name]!.cpuSeconds),
          row(`${name}: MiB resident then`, found, ({ restarts }) => restarts[name]!.residentMib),
        ]),
        row('nats-server: MiB resident before', found, ({ nats }) => nats.residentMib),
        row('nats-server: ms until a question is answered', found, ({ nats }) => nats.restart.ms),
        row('nats-server: CPU seconds until then', found, ({ nats }) => nats.restart.cpuSeconds),
        row('nats-server: MiB resident after', found, ({ nats }) => nats.restart.residentMib),
        row('bytes on disk a task', found, ({ diskBytes, tasks }) => diskBytes / tasks),
        row('seconds to fill', found, ({ fillSeconds }) => fillSeconds),
      ],
    },
    targets: services.map(name => flat(`CPU of the start of ${name}`, found, ({ restarts }) => restarts[name]!.cpuSeconds)),
  };
}

function work(found: readonly Stored[]): Finding {
  const times = (name: string, of: (one: Stored) => Times) => [
    row(`${name}: p50`, found, one => of(one).p50),
    row(`${name}: p99`, found, one => of(one).p99),
  ];
  return {
    title: 'stored: work, by the number of stored tasks',
    table: {
      columns: columnsOf('ms', found),
      rows: [
        row('kill -9 of one of two relays to the slowest first text of 16 questions', found, ({ takeoverMs }) => takeoverMs),
        ...times('question to first text', ({ firstText }) => firstText),
        ...times('an old task resumed, until its end', ({ resume }) => resume),
        ...times('the end of a task to its last notification', ({ webhook }) => webhook),
      ],
    },
    targets: [
      flat('takeover', found, ({ takeoverMs }) => takeoverMs),
      flat('first text, p50', found, ({ firstText }) => firstText.p50),
      flat('resume, p50', found, ({ resume }) => resume.p50),
      flat('webhook, p50', found, ({ webhook }) => webhook.p50),
    ],
  };
}

/** The largest number of tasks against the smallest. */
function flat(name: string, found: readonly Stored[], of: (one: Stored) => number): Target {
  const [first, last] = [of(found[0]!), of(found.at(-1)!)];
  const span = `${figure(found[0]!.tasks)} to ${figure(found.at(-1)!.tasks)} stored tasks`;
  return { name: `stored: ${name}, ${span}: factor`, wanted: { atMost: FLAT_FACTOR }, found: last / Math.max(first, 0.001) };
}
