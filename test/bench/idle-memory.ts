import { setTimeout as delay } from 'node:timers/promises';
import { ServiceProcess } from '../support/cluster/service-process.ts';
import { freePort } from '../support/free-port.ts';
import { type DirectCluster, startDirectCluster } from './bench-cluster.ts';
import { killAtExit } from './measure/kill-at-exit.ts';
import { residentKibOf } from './measure/process-usage.ts';
import { spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Question, Size } from './question.ts';
import { ANSWER } from './tokens.ts';

/** Frequent collections leave only the memory that a viewer holds. */
const COLLECT_GARBAGE = '--expose-gc --import=data:text/javascript,setInterval(gc,200).unref()';
const SETTLE_MS = 1_200;
const WARM_UP_VIEWERS = 50;

type Plan = { rounds: number; viewers: [some: number, many: number] };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, viewers: [500, 1_000] },
  quick: { rounds: 3, viewers: [250, 500] },
  tiny: { rounds: 1, viewers: [10, 20] },
};

type Round = { base: number; some: number; many: number };

/** Memory of one viewer of a quiet task in the ingress. Each round has a new ingress, because a heap that was large stays large. */
export const idleMemory: Question = {
  name: 'idle-memory',
  async ask(size) {
    const { rounds, viewers } = PLANS[size];
    const [some, many] = viewers;
    const title = `idle memory: resident KiB of one ingress, ${rounds} rounds`;
    const columns = ['KiB', ...SPREAD_COLUMNS];
    await using bench = await startDirectCluster();
    if (residentKibOf(process.pid) === undefined)
      return [{ title, table: { columns, rows: [] }, notes: ['unavailable on this platform'] }];
    const measured: Round[] = [];
    for (let round = 0; round < rounds; round++) measured.push(await oneIngress(bench, some, many));
    const row = (name: string, of: (round: Round) => number) => [name, ...spreadCells(spreadOf(measured.map(of)))];
    return [
      {
        title,
        table: {
          columns,
          rows: [
            row('no viewer', ({ base }) => base),
            row(`${some} viewers`, round => round.some),
            row(`${many} viewers`, round => round.many),
            row(`per viewer, 0 to ${some}`, round => (round.some - round.base) / some),
            row(`per viewer, 0 to ${many}`, round => (round.many - round.base) / many),
          ],
        },
        notes: ['all of one working task, each with its own connection; the kernel’s socket buffers are not in it'],
      },
    ];
  },
};

async function oneIngress({ cluster, client, producer }: DirectCluster, some: number, many: number): Promise<Round> {
  const env = { NATS_URL: cluster.nats.url, NODE_OPTIONS: COLLECT_GARBAGE };
  const ingress = new ServiceProcess({ service: 'ingress', instance: 'ingress-memory', env }, await freePort());
  await ingress.start();
  const released = killAtExit(ingress.pid);
  try {
    const [taskId] = await client.call('ask', { url: ingress.url, text: 'begin', artifact: ANSWER, count: 1 });
    await producer.call('idle', { taskId: taskId! });
    const watch = (count: number) => client.call('watch', { url: ingress.url, count, taskId: taskId! });
    await watch(WARM_UP_VIEWERS);
    await client.call('leave');
    const base = await settledKib(ingress.pid);
    await watch(some);
    const withSome = await settledKib(ingress.pid);
    await watch(many - some);
    return { base, some: withSome, many: await settledKib(ingress.pid) };
  } finally {
    await client.call('leave');
    released();
    await ingress.kill();
  }
}

async function settledKib(pid: number): Promise<number> {
  await delay(SETTLE_MS);
  return residentKibOf(pid) ?? Number.NaN;
}
