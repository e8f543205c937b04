import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../simulator/random.ts';
import { type CampaignCluster, REPLICAS, type Replica } from './campaign-cluster.ts';

type Target = { cluster: CampaignCluster; random: Random };

/** Number of faults at the same time. */
const TOGETHER = { min: 2, max: 3 };
/** Each fault begins within this time after the strike and lasts longer, so all of them overlap. */
const BEGIN_MS_MAX = 2_000;
const LASTS_MS = { min: 3_000, max: 12_000 };
/** A killed process restarts after this time. */
const DEAD_MS = { min: 200, max: 2_000 };
/** An item of work whose worker is silent goes to another one after this (`ackWait`). */
const ACK_WAIT_MS = 5_000;
const LOST_SHARE = 0.2;

/** A fault of one process, or of NATS: resolves when it is over. */
type Fault = (replica: Replica, target: Target) => Promise<void>;

const kill: Fault = async ({ process }, { cluster, random }) => {
  await cluster.kill(process);
  await sleep(random.between(DEAD_MS.min, DEAD_MS.max));
  await process.start();
};

const suspend: Fault = async ({ process }, { random }) => {
  process.pause();
  await lasts(random);
  process.resume();
};

const freezePath: Fault = async ({ proxies }, { random }) => {
  for (const proxy of proxies) proxy.freeze();
  await lasts(random);
  for (const proxy of proxies) proxy.thaw();
};

const cutPath: Fault = async ({ proxies }, { random }) => {
  for (const proxy of proxies) proxy.cut();
  await lasts(random);
  for (const proxy of proxies) proxy.mend();
};

const slowPath: Fault = async ({ proxies }, { random }) => {
  const delayMs = random.between(50, 500);
  for (const proxy of proxies) proxy.delay(delayMs);
  await lasts(random);
  for (const proxy of proxies) proxy.delay(0);
};

const loseAnswers: Fault = async ({ proxies }, { random }) => {
  for (const proxy of proxies) proxy.lose = () => random.chance(LOST_SHARE);
  await lasts(random);
  for (const proxy of proxies) proxy.lose = undefined;
};

/** Kills one nats-server. With three servers, the other two continue. */
const killNats: Fault = async (_replica, { cluster, random }) => {
  const server = random.pick([...cluster.nats.values()]);
  await server.kill();
  await lasts(random);
  await server.restart();
};

const killRemoteAgent: Fault = async (_replica, { cluster, random }) => {
  await cluster.kill(cluster.remoteAgent);
  await sleep(random.between(DEAD_MS.min, DEAD_MS.max));
  await cluster.remoteAgent.start();
};

const lasts = (random: Random) => sleep(random.between(LASTS_MS.min, LASTS_MS.max));

/** Mostly deaths and frozen paths, because together they show defects that neither shows by itself. */
const OF_PROCESSES: readonly Fault[] = [kill, kill, kill, freezePath, freezePath, suspend, cutPath, slowPath, loseAnswers];
/** At most one of these faults occurs at a time. */
const OF_NEIGHBOURS: readonly Fault[] = [killNats, killRemoteAgent];
const NEIGHBOUR_SHARE = 0.25;

/** Two or three faults of different processes at once, of any kind that the cluster has. */
export async function strikeSeveral(target: Target): Promise<void> {
  const { cluster, random } = target;
  const count = random.between(TOGETHER.min, TOGETHER.max);
  const spared = [...cluster.replicas];
  const faults = Array.from({ length: count }, (_, index) => {
    const [replica] = spared.splice(Math.floor(random.next() * spared.length), 1);
    const isNeighbour = index === 0 && random.chance(NEIGHBOUR_SHARE);
    const fault = random.pick(isNeighbour ? OF_NEIGHBOURS : OF_PROCESSES);
    return { replica: replica!, fault, beginsAfterMs: random.between(0, BEGIN_MS_MAX) };
  });
  await Promise.all(
    faults.map(async ({ replica, fault, beginsAfterMs }) => {
      await sleep(beginsAfterMs);
      await fault(replica, target);
    }),
  );
}

/**
 * The path of one worker is frozen until its sibling has its work; then the sibling dies, and the messages that the first one has sent
 * arrive.
 */
export async function freezeOneAndKillItsSibling({ cluster, random }: Target): Promise<void> {
  const workers = [...cluster.of('sub-agent'), ...cluster.of('sub-agent'), ...cluster.of('supervisor')];
  const frozen = random.pick(workers);
  const at = cluster.replicas.indexOf(frozen);
  const sibling = cluster.replicas[at % REPLICAS === 0 ? at + 1 : at - 1]!;
  for (const proxy of frozen.proxies) proxy.freeze();
  await sleep(ACK_WAIT_MS + random.between(500, 3_000));
  await cluster.kill(sibling.process);
  await sleep(random.between(0, 3_000));
  for (const proxy of frozen.proxies) proxy.thaw();
  await sleep(random.between(DEAD_MS.min, DEAD_MS.max));
  await sibling.process.start();
}
