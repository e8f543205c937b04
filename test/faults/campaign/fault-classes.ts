import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LogNames } from '@hopline/log-jetstream';
import type { Random } from '../../simulator/random.ts';
import type { ServiceProcess } from '../../support/cluster/service-process.ts';
import type { NatsServer } from '../../support/nats/nats-server.ts';
import { fillDisk } from '../../support/small-disk.ts';
import { type CampaignCluster, type ClusterNeeds, REPLICAS, type Replica, type ServiceName } from './campaign-cluster.ts';
import { freezeOneAndKillItsSibling } from './frozen-path-and-death.ts';
import { drawStrike, type StrikeOptions, strike } from './mixed-faults.ts';
import type { WorkloadOptions } from './workload.ts';

type Target = { cluster: CampaignCluster; random: Random; print: (line: string) => void };

/** Faults of one kind, repeated while tasks run. */
export type FaultClass = {
  name: string;
  /** One line for the report: what happens, and for how long. */
  what: string;
  /** Replicas of the streams with which the class makes sense. */
  replicas: readonly (1 | 3)[];
  /**
   * Requirements of the class for its cluster, other than the replicas. Classes with the same requirements run one after another on one
   * cluster.
   */
  needs?: {
    proxied?: true;
    clocks?: true;
    env?: Record<string, string>;
    hasEveryAgent?: true;
    diskBytes?: number;
    syncInterval?: 'always';
  };
  /** Minimum number of faults, however soon the tasks are done. */
  faultsMin: number;
  /** Milliseconds between two faults; QUIET_MS by default. */
  quietMs?: { min: number; max: number };
  /** Reasons of failures that the faults explain; reasons of the agents themselves are always explained. */
  explains: readonly RegExp[];
  /** True if the log removes inputs because of bytes, so that an audit may be incomplete. */
  removesInputs?: true;
  /** True if servers are killed. They then forget deliveries, so two runs of an attempt may overlap until the second one writes. */
  overlapsRuns?: true;
  workload?: WorkloadOptions;
  /** Causes one fault. Resolves when it is over. */
  strike(target: Target): Promise<void>;
};

const BOTH = [1, 3] as const;
/** Half of the tasks are in mid-text for long enough to meet a fault. */
const LONG_TASKS: WorkloadOptions = { longShare: 0.5 };
/** Time between two faults of NATS. No text flows during such a fault, so tasks need time to run in between. */
const NATS_QUIET_MS = { min: 8_000, max: 15_000 };
/** Explained because even the third attempt of a turn may be lost. */
export const EXHAUSTED = /attempts exhausted|failed several times/;
/** The registry is a bucket, so a process that cannot read it sees no agent. */
const NO_AGENT = /not available|no agent is available/;

function kills(service: ServiceName, faultsMin: number): FaultClass {
  return {
    name: `${service} SIGKILL`,
    what: 'SIGKILL of one of the processes; it starts again 0.2 to 2 s later',
    replicas: BOTH,
    faultsMin,
    explains: [EXHAUSTED],
    strike: async ({ cluster, random }) => {
      const { process } = random.pick(cluster.of(service));
      await cluster.kill(process);
      await sleep(random.between(200, 2_000));
      await process.start();
    },
  };
}

function freezes(service: ServiceName): FaultClass {
  return {
    name: `${service} SIGSTOP`,
    what: 'SIGSTOP of one of the processes, SIGCONT 5 to 30 s later',
    replicas: [1],
    faultsMin: 3,
    explains: [EXHAUSTED],
    strike: async ({ cluster, random }) => {
      const { process } = random.pick(cluster.of(service));
      process.pause();
      await sleep(random.between(5_000, 30_000));
      process.resume();
    },
  };
}

async function restart(cluster: CampaignCluster, process: ServiceProcess): Promise<void> {
  await cluster.kill(process, 'SIGTERM');
  await process.start();
}

async function away(servers: readonly NatsServer[], ms: number): Promise<void> {
  await Promise.all(servers.map(server => server.kill()));
  await sleep(ms);
  await Promise.all(servers.map(server => server.restart()));
}

const serverNamed = ({ nats }: CampaignCluster, name: string): NatsServer => nats.get(name)!;

function proxyFault(
  name: string,
  what: string,
  begin: (replica: Replica, random: Random) => void,
  end: (replica: Replica) => void,
): FaultClass {
  return {
    name,
    what,
    replicas: BOTH,
    needs: { proxied: true },
    faultsMin: 6,
    explains: [EXHAUSTED, NO_AGENT],
    strike: async ({ cluster, random }) => {
      const replica = random.pick(cluster.replicas);
      begin(replica, random);
      await sleep(random.between(2_000, 12_000));
      end(replica);
    },
  };
}

/** The remote agent is not part of Hopline: its tasks may fail with it. */
const REMOTE_GONE = /the agent cannot be reached|the stream ended without a terminal state|the agent answered with error/;
const LOST_SHARE = 0.2;
const CLOCK_STEP_S_MAX = 3_600;

export const FAULT_CLASSES: readonly FaultClass[] = [
  {
    name: 'none',
    what: 'no fault: the pauses of text on this machine',
    replicas: BOTH,
    faultsMin: 5,
    explains: [],
    strike: async () => {},
  },
  kills('relay', 50),
  kills('ingress', 6),
  kills('supervisor', 6),
  kills('sub-agent', 6),
  kills('notifier', 4),
  {
    name: 'workers SIGKILL at once',
    what: 'SIGKILL of both supervisors, or both processes of an agent: every item in work is delivered again',
    replicas: BOTH,
    faultsMin: 5,
    explains: [EXHAUSTED, NO_AGENT],
    strike: async ({ cluster, random }) => {
      const [writers, readers] = [cluster.of('sub-agent').slice(0, 2), cluster.of('sub-agent').slice(2)];
      const victims = random.pick([cluster.of('supervisor'), writers, readers]);
      await Promise.all(victims.map(({ process }) => cluster.kill(process)));
      await Promise.all(victims.map(({ process }) => process.start()));
    },
  },
  {
    name: 'remote agent SIGKILL',
    what: 'SIGKILL of the remote A2A agent, which forgets its tasks; it starts again at once',
    replicas: [1],
    faultsMin: 4,
    explains: [EXHAUSTED, REMOTE_GONE],
    strike: async ({ cluster }) => {
      await cluster.kill(cluster.remoteAgent);
      await cluster.remoteAgent.start();
    },
  },
  freezes('relay'),
  freezes('ingress'),
  freezes('supervisor'),
  freezes('sub-agent'),
  freezes('notifier'),
  {
    name: 'rolling restart',
    what: 'SIGTERM of one process of each pair, all at once, and a new start; then the same of its sibling',
    replicas: BOTH,
    faultsMin: 3,
    explains: [],
    strike: async ({ cluster }) => {
      for (const number of [0, 1]) {
        const half = cluster.replicas.filter((_, index) => index % REPLICAS === number);
        await Promise.all(half.map(({ process }) => restart(cluster, process)));
      }
    },
  },
  {
    name: 'NATS restart',
    what: 'the only nats-server is stopped (SIGTERM) or killed (SIGKILL), back after 0.5 to 8 s',
    replicas: [1],
    faultsMin: 5,
    quietMs: NATS_QUIET_MS,
    explains: [EXHAUSTED, NO_AGENT],
    overlapsRuns: true,
    strike: async ({ cluster, random }) => {
      const server = serverNamed(cluster, 'nats-1');
      if (random.chance(0.5)) await server.restart();
      else await away([server], random.between(500, 8_000));
    },
  },
  {
    name: 'NATS node SIGKILL',
    what: 'SIGKILL of one node, back after 2 to 10 s',
    replicas: [3],
    faultsMin: 5,
    quietMs: NATS_QUIET_MS,
    explains: [EXHAUSTED, NO_AGENT],
    strike: async ({ cluster, random }) => away([random.pick([...cluster.nats.values()])], random.between(2_000, 10_000)),
  },
  {
    name: 'NATS leader SIGKILL',
    what: 'SIGKILL of the node that leads inputs or facts of a stream group, back after 2 to 10 s',
    replicas: [3],
    faultsMin: 5,
    quietMs: NATS_QUIET_MS,
    explains: [EXHAUSTED, NO_AGENT],
    strike: async ({ cluster, random }) => {
      const { inputsStreams, factsStreams } = new LogNames('', cluster.log.layouts.groups);
      const leader = await cluster.leaderOf(random.pick([...inputsStreams, ...factsStreams]));
      await away([serverNamed(cluster, leader)], random.between(2_000, 10_000));
    },
  },
  {
    name: 'NATS node SIGSTOP',
    what: 'SIGSTOP of one node, SIGCONT 5 to 15 s later',
    replicas: [3],
    faultsMin: 4,
    quietMs: NATS_QUIET_MS,
    explains: [EXHAUSTED, NO_AGENT],
    strike: async ({ cluster, random }) => {
      const server = random.pick([...cluster.nats.values()]);
      server.pause();
      await sleep(random.between(5_000, 15_000));
      server.resume();
    },
  },
  {
    name: 'NATS majority SIGKILL',
    what: 'SIGKILL of all nodes but one, back after 3 to 10 s: nothing can be stored meanwhile',
    replicas: [3],
    faultsMin: 4,
    quietMs: NATS_QUIET_MS,
    explains: [EXHAUSTED, NO_AGENT],
    strike: async ({ cluster, random }) => {
      const spared = random.pick([...cluster.nats.keys()]);
      const others = [...cluster.nats].filter(([name]) => name !== spared).map(([, server]) => server);
      await away(others, random.between(3_000, 10_000));
    },
  },
  {
    name: 'NATS power loss',
    what: 'one node is away for 3 to 6 s; then another loses power and a third stalls, while the first two return; every write is synced',
    replicas: [3],
    needs: { syncInterval: 'always' },
    faultsMin: 3,
    quietMs: NATS_QUIET_MS,
    explains: [EXHAUSTED, NO_AGENT],
    strike: async ({ cluster, random }) => {
      const servers = [...cluster.nats.values()];
      const away = random.pick(servers);
      const powerless = random.pick(servers.filter(server => server !== away));
      const stalled = servers.find(server => server !== away && server !== powerless)!;
      await away.kill();
      await sleep(random.between(3_000, 6_000));
      // A synced disk has everything that was acknowledged. test/faults/one-power-loss.test.ts shows the loss without syncing.
      await powerless.kill();
      stalled.pause();
      await Promise.all([away.restart(), powerless.restart()]);
      await sleep(random.between(5_000, 10_000));
      stalled.resume();
    },
  },
  proxyFault(
    'partition',
    'one process cannot reach NATS for 2 to 12 s: its connections are cut, or pass nothing',
    ({ proxies }, random) => {
      const isCut = random.chance(0.5);
      for (const proxy of proxies) isCut ? proxy.cut() : proxy.freeze();
    },
    ({ proxies }) => {
      for (const proxy of proxies) {
        proxy.mend();
        proxy.thaw();
      }
    },
  ),
  proxyFault(
    'slow link',
    'all that one process exchanges with NATS takes 50 to 1,100 ms longer in each direction, for 2 to 12 s',
    ({ proxies }, random) => {
      const delayMs = random.between(50, 1_100);
      for (const proxy of proxies) proxy.delay(delayMs);
    },
    ({ proxies }) => {
      for (const proxy of proxies) proxy.delay(0);
    },
  ),
  proxyFault(
    'lost answers',
    'a fifth of the messages from NATS to one process is lost, acknowledgements among them, for 2 to 12 s',
    ({ proxies }, random) => {
      for (const proxy of proxies) proxy.lose = () => random.chance(LOST_SHARE);
    },
    ({ proxies }) => {
      for (const proxy of proxies) proxy.lose = undefined;
    },
  ),
  {
    name: 'frozen path and a death',
    what: 'the path of one worker to NATS is frozen until its sibling has its work, then the sibling is killed, then the path thaws',
    replicas: BOTH,
    needs: { proxied: true },
    faultsMin: 10,
    explains: [EXHAUSTED, NO_AGENT],
    workload: LONG_TASKS,
    strike: freezeOneAndKillItsSibling,
  },
  {
    name: 'several at once',
    what: 'two or three faults that the seed draws overlap: of processes, of their paths, of the remote agent, of NATS',
    replicas: BOTH,
    needs: { proxied: true },
    faultsMin: 10,
    quietMs: NATS_QUIET_MS,
    explains: [EXHAUSTED, NO_AGENT, REMOTE_GONE],
    overlapsRuns: true,
    workload: LONG_TASKS,
    strike: async ({ cluster, random, print }) => {
      const replicas = cluster.nats.size === 1 ? 1 : 3;
      await strike(drawStrike(random, { replicas, hasSmallDisks: false }), cluster, print);
    },
  },
  {
    name: 'clock step',
    what: 'the system clock of one process is set up to an hour forwards or backwards, and right again 3 to 15 s later',
    replicas: BOTH,
    needs: { clocks: true },
    faultsMin: 10,
    explains: [],
    strike: async ({ cluster, random }) => {
      const { clock } = random.pick(cluster.replicas);
      const seconds = random.between(1, CLOCK_STEP_S_MAX);
      clock!.step(random.chance(0.5) ? seconds : -seconds);
      await sleep(random.between(3_000, 15_000));
      clock!.step(0);
    },
  },
  {
    name: 'streams at their byte limit',
    what: 'the streams of inputs and of work hold 16 MiB; every third message has 256 KiB',
    replicas: [1],
    needs: { env: { HOPLINE_INPUTS_BYTES_MAX: `${16 * 1024 ** 2}`, HOPLINE_WORK_BYTES_MAX: `${16 * 1024 ** 2}` } },
    faultsMin: 5,
    explains: [],
    removesInputs: true,
    workload: { ballastShare: 0.33 },
    strike: async () => {},
  },
  {
    name: 'disk full',
    what: 'the disk of NATS has no byte left for 5 s, then room again; nats-server is restarted',
    replicas: [1],
    needs: { diskBytes: 256 * 1024 ** 2 },
    faultsMin: 2,
    quietMs: NATS_QUIET_MS,
    explains: [EXHAUSTED, NO_AGENT],
    strike: async ({ cluster }) => {
      const server = serverNamed(cluster, 'nats-1');
      const ballast = join(server.dir, 'ballast');
      fillDisk(ballast);
      await sleep(5_000);
      rmSync(ballast);
      await server.restart();
    },
  },
];

/** The size of a disk that fills within a second. */
const SMALL_DISK_BYTES = 512 * 1024 ** 2;

/**
 * Faults of every kind, drawn two or three at a time, over agents of every kind, while clients do everything that they can. `seed` is in the name,
 * so that each round of a run draws others.
 */
export function mixedClass(seed: number, { replicas, hasSmallDisks }: StrikeOptions): FaultClass {
  return {
    name: `mixed, seed ${seed}`,
    what: 'two or three faults that the seed draws overlap, agents of every kind, clients that cut, cancel, answer, fork, read and list',
    replicas: [replicas],
    needs: { proxied: true, hasEveryAgent: true, ...(hasSmallDisks && { diskBytes: SMALL_DISK_BYTES }) },
    faultsMin: 8,
    explains: [EXHAUSTED, NO_AGENT, REMOTE_GONE],
    overlapsRuns: true,
    workload: { ...LONG_TASKS, isMixed: true },
    strike: ({ cluster, random, print }) => strike(drawStrike(random, { replicas, hasSmallDisks }), cluster, print),
  };
}

/** Describes the cluster of a class as text, equal for classes that can share one. */
export function clusterKeyOf({ needs = {} }: FaultClass): string {
  const { proxied = false, clocks = false, env = {}, hasEveryAgent = false, diskBytes = 0, syncInterval = '' } = needs;
  return JSON.stringify([proxied, clocks, env, hasEveryAgent, diskBytes, syncInterval]);
}

export function needsOf(
  { needs = {} }: FaultClass,
  { replicas, size }: Pick<ClusterNeeds, 'replicas' | 'size'>,
  stores: readonly string[] | undefined,
): ClusterNeeds {
  const { diskBytes: _diskBytes, ...rest } = needs;
  return { replicas, size, ...rest, ...(stores !== undefined && { stores }) };
}
