import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@hopline/local-cluster';
import { FACTS_STREAM } from '@hopline/log-jetstream';
import type { Msg } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { ServiceProcess } from '../support/cluster/service-process.ts';
import { heapBytes, printsHeap } from '../support/held-memory.ts';
import type { BareSseMethods } from './bare-sse/main.ts';
import { type Client, type DirectCluster, startClient, startDirectCluster } from './bench-cluster.ts';
import { monotonicMs } from './measure/clock.ts';
import { killAtExit } from './measure/kill-at-exit.ts';
import { LoadProcess } from './measure/load-process.ts';
import { cpuSecondsOf, residentKibOf } from './measure/process-usage.ts';
import { spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { ANSWER } from './tokens.ts';

/** Frequent collections leave only the memory that a viewer really needs. */
const HELD_MEMORY = printsHeap('setInterval(gc,200).unref();');
const SETTLE_MS = 1_500;
const BACK_SECONDS_MAX = 5;
/** A viewer and minute. The requests of relays differ by some from one window to the next. */
const QUIET_REQUESTS_MAX = 0.1;
const CLIENT_RETRY_MS_MAX = 500;
const WARM_UP_VIEWERS = 200;
const VIEWERS_AT_ONCE = 50;

/** `ofOneTask`: number of viewers that come back to one task. `viewers` others come back to tasks that a few of them share. */
type Plan = { rounds: number; viewers: number; tasks: number; quietMs: number; ofOneTask: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 1, viewers: 10_000, tasks: 500, quietMs: 15_000, ofOneTask: 2_000 },
  quick: { rounds: 1, viewers: 1_000, tasks: 200, quietMs: 10_000, ofOneTask: 500 },
  tiny: { rounds: 1, viewers: 20, tasks: 5, quietMs: 2_000, ofOneTask: 20 },
};
/** A follower has its tail pushed after some checks. */
const PUSHED_MS = 15_000;

/** Bytes that one viewer adds. */
type Held = { resident: number; heap: number };

/** How much does an idle viewer cost? Each round has new processes, because a heap that was large stays large. */
export const viewers: Question = {
  name: 'viewers',
  async ask(size) {
    const plan = PLANS[size];
    await using bench = await startDirectCluster();
    if (residentKibOf(process.pid) === undefined)
      return [{ title: 'viewers', table: { columns: [], rows: [] }, notes: ['unavailable on this platform'] }];
    const bare: Held[] = [];
    const shared: Held[] = [];
    const apart: Held[] = [];
    const requests: number[] = [];
    for (let round = 0; round < plan.rounds; round++) {
      bare.push(await bareRound(plan));
      shared.push(await sharedRound(bench, plan));
      const round = await apartRound(bench, plan);
      apart.push(round.held);
      requests.push(round.requestsPerMinute);
    }
    return [memory(plan, bare, shared, apart), quiet(plan, requests), await comingBack(plan)];
  },
};

/** An ingress that is killed and started again. Each viewer continues after its last event. */
async function comingBack({ viewers: count, tasks, ofOneTask }: Plan): Promise<Finding> {
  await using bench = await startDirectCluster();
  return await withIngress(
    bench,
    async ({ ingress, client }) => {
      const taskIds: string[] = [];
      while (taskIds.length < tasks + 1) {
        const more = Math.min(VIEWERS_AT_ONCE, tasks + 1 - taskIds.length);
        taskIds.push(...(await client.call('ask', { url: ingress.url, text: 'begin', artifact: ANSWER, count: more })));
        await client.call('leave');
      }
      for (const taskId of taskIds) await bench.producer.call('idle', { taskId });
      await delay(SETTLE_MS);
      const [shared, ...others] = taskIds as [string, ...string[]];
      const { url } = ingress;
      for (let left = ofOneTask; left > 0; left -= VIEWERS_AT_ONCE)
        await client.call('comeBack', { url, taskId: shared, count: Math.min(VIEWERS_AT_ONCE, left) });
      for (const [index, taskId] of others.entries()) {
        const share = Math.floor(((index + 1) * count) / tasks) - Math.floor((index * count) / tasks);
        await client.call('comeBack', { url, taskId, count: share });
      }
      await delay(SETTLE_MS);
      const nc = await connect({ servers: bench.cluster.nats.url });
      let [requests, histories] = [0, 0];
      const isRead = new RegExp(`^\\$JS\\.API\\.(DIRECT\\.GET|STREAM\\.MSG\\.GET|CONSUMER\\.CREATE)\\.${FACTS_STREAM}(\\.|$)`);
      const callback = (_error: unknown, message: Msg) => {
        if (!isRead.test(message.subject)) return;
        requests += 1;
        // The others read the newest record of tasks.
        if (message.string().includes('"next_by_subj"')) histories += 1;
      };
      nc.subscribe('$JS.API.>', { callback });
      await nc.flush();
      const killedAtMs = monotonicMs();
      await ingress.kill();
      await ingress.start();
      const startedAtMs = monotonicMs();
      const returnedAtMs = await client.call('returned', { sinceMs: killedAtMs });
      const cpuSeconds = cpuSecondsOf(ingress.pid) ?? Number.NaN;
      // The snapshot, and after it exactly the token that is appended now.
      await bench.producer.call('oneMore', { taskIds });
      await client.call('received', { events: 2 });
      await nc.close();
      const all = count + ofOneTask;
      const row = (name: string, value: number) => [name, figure(value)];
      const backSeconds = (returnedAtMs - killedAtMs) / 1000;
      return {
        title: `viewers: ingress killed and started, ${count.toLocaleString('en-US')} viewers of ${tasks} tasks and ${ofOneTask.toLocaleString('en-US')} of one task come back, each after its last event`,
        table: {
          columns: ['', 'one run'],
          rows: [
            row('seconds from the kill until the ingress is ready', (startedAtMs - killedAtMs) / 1000),
            row('seconds from the kill until all are back', backSeconds),
            row('CPU ms of the ingress a viewer, its start included', (1000 * cpuSeconds) / all),
            row('reads of the log a task', histories / taskIds.length),
            row('requests to NATS a viewer', requests / all),
          ],
        },
        notes: [
          `a viewer comes back within ${CLIENT_RETRY_MS_MAX} ms of its try that failed; then each received the next token once`,
        ],
        targets: [
          {
            name: 'seconds from the kill of an ingress until all its viewers are back',
            wanted: { atMost: BACK_SECONDS_MAX },
            found: backSeconds,
          },
          { name: 'reads of the log a task, viewers come back', wanted: { atMost: 1 }, found: histories / taskIds.length },
        ],
      };
    },
    '',
  );
}

async function bareRound({ viewers: count }: Plan): Promise<Held> {
  await using server = new LoadProcess<BareSseMethods>(new URL('bare-sse/main.ts', import.meta.url), HELD_MEMORY);
  await using client = startClient();
  const url = await server.call('listen');
  const memoryOf = async () => ({ resident: await settledBytes(server.pid), heap: await server.call('heapBytes') });
  return await growth(client, memoryOf, of => client.call('watch', { url, count: of }), count);
}

/** All viewers see one task. */
function sharedRound(bench: DirectCluster, { viewers: count }: Plan): Promise<Held> {
  return withIngress(bench, async ({ ingress, client, memoryOf }) => {
    const [taskId] = await client.call('ask', { url: ingress.url, text: 'begin', artifact: ANSWER, count: 1 });
    await bench.producer.call('idle', { taskId: taskId! });
    return growth(client, memoryOf, of => client.call('watch', { url: ingress.url, count: of, taskId: taskId! }), count);
  });
}

/** Each viewer sees a task of its own. */
function apartRound(bench: DirectCluster, { tasks: count, quietMs }: Plan): Promise<{ held: Held; requestsPerMinute: number }> {
  return withIngress(bench, async ({ ingress, client, memoryOf }) => {
    const taskIds: string[] = [];
    while (taskIds.length < count) {
      const more = Math.min(50, count - taskIds.length);
      taskIds.push(...(await client.call('ask', { url: ingress.url, text: 'begin', artifact: ANSWER, count: more })));
      await client.call('leave');
    }
    let from = 0;
    const watch = async (of: number) => {
      for (const taskId of taskIds.slice(from, from + of)) await client.call('watch', { url: ingress.url, count: 1, taskId });
      from = (from + of) % count;
    };
    const held = await growth(client, memoryOf, watch, count);
    await delay(PUSHED_MS);
    const nc = await connect({ servers: bench.cluster.nats.url });
    try {
      let requests = 0;
      // Those that concern the stream of facts. The size of the stream is asked for by each relay, with and without viewers.
      const callback = (_error: unknown, { subject }: Msg) => {
        if (subject.includes(`.${FACTS_STREAM}`) && !subject.startsWith('$JS.API.STREAM.INFO.')) requests += 1;
      };
      nc.subscribe('$JS.API.>', { callback });
      const requestsNow = async () => {
        requests = 0;
        await delay(quietMs);
        return requests;
      };
      const watched = await requestsNow();
      await client.call('leave');
      await delay(PUSHED_MS);
      // Relays look after the newest records of their shards, with and without viewers.
      const unwatched = await requestsNow();
      return { held, requestsPerMinute: (Math.max(0, watched - unwatched) / count / quietMs) * 60_000 };
    } finally {
      await nc.close();
    }
  });
}

type Running = { ingress: ServiceProcess; client: Client; memoryOf: () => Promise<Held> };

async function withIngress<R>(
  { cluster }: DirectCluster,
  work: (running: Running) => Promise<R>,
  nodeOptions = HELD_MEMORY,
): Promise<R> {
  const env = { NATS_URL: cluster.nats.url, NODE_OPTIONS: nodeOptions, HOPLINE_STREAMS_MAX: '100000' };
  const ingress = new ServiceProcess({ service: 'ingress', instance: 'ingress-viewers', env }, await freePort());
  await ingress.start();
  const released = killAtExit(ingress.pid);
  await using client = startClient();
  const memoryOf = async () => ({ resident: await settledBytes(ingress.pid), heap: await heapBytes(ingress) });
  try {
    return await work({ ingress, client, memoryOf });
  } finally {
    await client.call('leave');
    released();
    await ingress.kill();
  }
}

async function growth(
  client: Client,
  memoryOf: () => Promise<Held>,
  watch: (count: number) => Promise<void>,
  count: number,
): Promise<Held> {
  for (let left = WARM_UP_VIEWERS; left > 0; left -= VIEWERS_AT_ONCE) await watch(VIEWERS_AT_ONCE);
  await client.call('leave');
  const before = await memoryOf();
  // Opening all at once would also measure the memory that their requests leave behind in the allocator.
  for (let left = count; left > 0; left -= VIEWERS_AT_ONCE) await watch(Math.min(VIEWERS_AT_ONCE, left));
  const after = await memoryOf();
  return { resident: (after.resident - before.resident) / count, heap: (after.heap - before.heap) / count };
}

async function settledBytes(pid: number): Promise<number> {
  await delay(SETTLE_MS);
  return (residentKibOf(pid) ?? Number.NaN) * 1024;
}

function memory({ rounds, viewers: count, tasks }: Plan, bare: Held[], shared: Held[], apart: Held[]): Finding {
  const row = (name: string, list: Held[], of: (held: Held) => number) => [
    name,
    ...spreadCells(spreadOf(list.map(held => of(held) / 1024))),
  ];
  const resident = spreadOf(shared.map(held => held.resident / 1024));
  const heap = spreadOf(shared.map(held => held.heap / 1024));
  return {
    title: `viewers: memory of an idle viewer, ${count} of one task and ${tasks} with a task each, ${rounds} rounds`,
    table: {
      columns: ['KiB a viewer', ...SPREAD_COLUMNS],
      rows: [
        row('bare SSE of node:http, resident', bare, held => held.resident),
        row('bare SSE of node:http, heap', bare, held => held.heap),
        row('ours, one task, resident', shared, held => held.resident),
        row('ours, one task, heap', shared, held => held.heap),
        row('ours, a task each, resident', apart, held => held.resident),
        row('ours, a task each, heap', apart, held => held.heap),
      ],
    },
    notes: [
      'each with its own connection; the kernel’s socket buffers are not in it; a task each includes the follower of the task',
    ],
    targets: [
      { name: 'heap KiB of an idle viewer', wanted: { atMost: 10 }, found: heap },
      { name: 'resident KiB of an idle viewer', wanted: { atMost: 10 }, found: resident },
    ],
  };
}

function quiet({ rounds, tasks, quietMs }: Plan, requests: number[]): Finding {
  const found = spreadOf(requests);
  return {
    title: `viewers: requests to NATS, ${tasks} viewers of quiet tasks, ${quietMs / 1000} s, ${rounds} rounds`,
    table: { columns: ['a viewer and minute', ...SPREAD_COLUMNS], rows: [['JetStream requests', ...spreadCells(found)]] },
    notes: ['more than without viewers, of those that concern the stream of facts'],
    targets: [{ name: 'requests to NATS of a quiet viewer, a minute', wanted: { atMost: QUIET_REQUESTS_MAX }, found }],
  };
}
