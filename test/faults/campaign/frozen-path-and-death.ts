import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../simulator/random.ts';
import { type CampaignCluster, REPLICAS } from './campaign-cluster.ts';

type Target = { cluster: CampaignCluster; random: Random };

/** A killed process restarts after this time. */
const DEAD_MS = { min: 200, max: 2_000 };
/** If the worker of an item is silent, the item goes to another worker after this time (`ackWait`). */
const ACK_WAIT_MS = 5_000;

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
