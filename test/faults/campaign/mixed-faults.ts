import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../simulator/random.ts';
import type { NatsServer } from '../../support/nats/nats-server.ts';
import { fillDisk } from '../../support/small-disk.ts';
import type { CampaignCluster, Replica } from './campaign-cluster.ts';

/** Number of faults at the same time. */
const TOGETHER = { min: 2, max: 3 };
/** Each fault begins within this time after the first one may, and most last longer, so that they overlap. */
const BEGIN_MS_MAX = 3_000;
const LASTS_MS = { min: 1_000, max: 12_000 };
/** A killed process restarts after this time. */
const DEAD_MS = { min: 200, max: 3_000 };
const DELAY_MS = { min: 50, max: 500 };
const LOST_SHARE = 0.2;
/** How long an acknowledged record may need to be on both servers that keep their power. */
const CURRENT_MS_MAX = 60_000;

/** One fault as the seed draws it. */
export type DrawnFault = {
  kind: FaultKind;
  /** The process or server that it hits, as a number from 0 to below 1, because their numbers depend on the cluster. */
  target: number;
  beginsAfterMs: number;
  lastsMs: number;
};

type FaultKind = keyof typeof OF_PROCESSES | keyof typeof OF_NEIGHBOURS;
type OnProcess = (replica: Replica, fault: DrawnFault, cluster: CampaignCluster) => Promise<void>;
type OnNeighbour = (server: NatsServer, fault: DrawnFault, cluster: CampaignCluster) => Promise<void>;

/** Faults of one process of Hopline. Faults of one strike hit different processes. */
const OF_PROCESSES = {
  'process killed': async ({ process }, { lastsMs }, cluster) => {
    await cluster.kill(process);
    await sleep(lastsMs);
    await process.start();
  },
  'process restarted': async ({ process }, _fault, cluster) => {
    await cluster.kill(process, 'SIGTERM');
    await process.start();
  },
  'process suspended': async ({ process }, { lastsMs }) => {
    process.pause();
    await sleep(lastsMs);
    process.resume();
  },
  'path frozen': async ({ proxies }, { lastsMs }) => {
    for (const proxy of proxies) proxy.freeze();
    await sleep(lastsMs);
    for (const proxy of proxies) proxy.thaw();
  },
  'path cut': async ({ proxies }, { lastsMs }) => {
    for (const proxy of proxies) proxy.cut();
    await sleep(lastsMs);
    for (const proxy of proxies) proxy.mend();
  },
  'path slow': async ({ proxies }, { lastsMs, target }) => {
    const delayMs = DELAY_MS.min + Math.floor(target * (DELAY_MS.max - DELAY_MS.min));
    for (const proxy of proxies) proxy.delay(delayMs);
    await sleep(lastsMs);
    for (const proxy of proxies) proxy.delay(0);
  },
  'answers lost': async ({ proxies }, { lastsMs, beginsAfterMs }) => {
    const random = new Random(lastsMs, `answers lost ${beginsAfterMs}`);
    for (const proxy of proxies) proxy.lose = () => random.chance(LOST_SHARE);
    await sleep(lastsMs);
    for (const proxy of proxies) proxy.lose = undefined;
  },
} satisfies Record<string, OnProcess>;

/** Faults of NATS and of the remote agent. A strike has at most one of them, in addition to a step-down. */
const OF_NEIGHBOURS = {
  'nats-server killed': async (server, { lastsMs }) => {
    await server.kill();
    await sleep(lastsMs);
    await server.restart();
  },
  'nats-server suspended': async (server, { lastsMs }) => {
    server.pause();
    await sleep(lastsMs);
    server.resume();
  },
  'leader steps down': async (_server, { target }, cluster) => {
    const streams = await cluster.streamNames();
    await cluster.stepDown(streams[Math.floor(target * streams.length)]!);
  },
  'disk full': async (server, { lastsMs }) => {
    const ballast = join(server.dir, 'ballast');
    fillDisk(ballast);
    await sleep(lastsMs);
    rmSync(ballast);
    // A server whose disk was full writes again only after a restart, which the liveness probe of the chart causes.
    await server.restart();
  },
  'power lost': losePower,
  'remote agent killed': async (_server, { lastsMs }, cluster) => {
    await cluster.kill(cluster.remoteAgent);
    await sleep(lastsMs);
    await cluster.remoteAgent.start();
  },
} satisfies Record<string, OnNeighbour>;

/**
 * One of three servers loses power: nothing that it wrote since the beginning of the fault was synced, so its store is put back as it was then.
 * The two others have every acknowledged record before it returns; otherwise the log may lose some (docs/reference/failures.md, "Durability").
 */
async function losePower(server: NatsServer, { lastsMs }: DrawnFault, cluster: CampaignCluster): Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), 'hopline-disk-'));
  try {
    server.pause();
    cpSync(server.dir, copy, { recursive: true });
    server.resume();
    await sleep(lastsMs);
    await server.kill();
    await cluster.untilCurrent(server, CURRENT_MS_MAX);
    rmSync(server.dir, { recursive: true });
    cpSync(copy, server.dir, { recursive: true });
    await server.restart();
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

const isDeath = (kind: FaultKind) => kind === 'process killed' || kind === 'remote agent killed';

/** Mostly deaths and frozen paths, because their combination reveals defects that neither reveals by itself. */
const PROCESS_DRAWS: readonly FaultKind[] = [
  'process killed',
  'process killed',
  'process killed',
  'path frozen',
  'path frozen',
  'process restarted',
  'process suspended',
  'path cut',
  'path slow',
  'answers lost',
];
const NEIGHBOUR_SHARE = 0.5;
const STEP_DOWN_SHARE = 0.25;

/** Properties of the cluster that decide which faults can be drawn. */
export type StrikeOptions = { replicas: 1 | 3; hasSmallDisks: boolean };

/** Two or three faults that overlap, with their beginnings and lengths. */
export function drawStrike(random: Random, { replicas, hasSmallDisks }: StrikeOptions): DrawnFault[] {
  const neighbours: FaultKind[] = [
    'nats-server killed',
    'nats-server suspended',
    'remote agent killed',
    ...(hasSmallDisks ? (['disk full'] as const) : []),
    ...(replicas === 3 ? (['power lost'] as const) : []),
  ];
  const count = random.between(TOGETHER.min, TOGETHER.max);
  return Array.from({ length: count }, (_, index) => {
    const isNeighbour = index === 0 && random.chance(NEIGHBOUR_SHARE);
    const isStepDown = index === 1 && replicas === 3 && random.chance(STEP_DOWN_SHARE);
    const kind = isStepDown ? 'leader steps down' : random.pick(isNeighbour ? neighbours : PROCESS_DRAWS);
    const lasts = isDeath(kind) ? DEAD_MS : LASTS_MS;
    const beginsAfterMs = random.between(0, BEGIN_MS_MAX);
    return { kind, target: random.next(), beginsAfterMs, lastsMs: random.between(lasts.min, lasts.max) };
  });
}

/** Causes the faults of a strike. Prints them first, so that the run can be repeated even if it does not end. */
export async function strike(
  faults: readonly DrawnFault[],
  cluster: CampaignCluster,
  print: (line: string) => void,
): Promise<void> {
  const spared = [...cluster.replicas];
  const servers = [...cluster.nats];
  const aimed = faults.map(fault => {
    const { kind, target } = fault;
    if (isOfProcesses(kind)) {
      const [replica] = spared.splice(Math.floor(target * spared.length), 1);
      return { fault, name: replica!.process.spec.instance, begin: () => OF_PROCESSES[kind](replica!, fault, cluster) };
    }
    const [name, server] = servers[Math.floor(target * servers.length)]!;
    return { fault, name, begin: () => OF_NEIGHBOURS[kind](server, fault, cluster) };
  });
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  const lines = aimed.map(
    ({ fault: { kind, beginsAfterMs, lastsMs }, name }) =>
      `${kind} (${name}) after ${seconds(beginsAfterMs)} for ${seconds(lastsMs)}`,
  );
  print(`    ${lines.join('; ')}`);
  await Promise.all(
    aimed.map(async ({ fault, begin }) => {
      await sleep(fault.beginsAfterMs);
      await begin();
    }),
  );
}

function isOfProcesses(kind: FaultKind): kind is keyof typeof OF_PROCESSES {
  return kind in OF_PROCESSES;
}
