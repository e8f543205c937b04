/** The leases as a process sees them: live processes, and the owner of each shard (no entry: no owner). */
export type Leases = { shards: number; live: ReadonlySet<string>; owners: ReadonlyMap<number, string> };

/** Shards to take and to release in order to hold the fair share and no more. */
export type SharePlan = { take: number[]; release: number[] };

/**
 * Fair share without a coordinator: no process holds more than ceil(shards / live processes). A process that holds more releases
 * the excess, a process that holds less takes free shards. Two processes may want the same free shard: the lease's revision lets
 * one of them have it.
 */
export function planShare(leases: Leases, instance: string): SharePlan {
  const own: number[] = [];
  const free: number[] = [];
  for (let shard = 0; shard < leases.shards; shard++) {
    const owner = leases.owners.get(shard);
    if (owner === instance) own.push(shard);
    else if (owner === undefined || !leases.live.has(owner)) free.push(shard);
  }
  const shareMax = Math.ceil(leases.shards / Math.max(1, leases.live.size));
  return { take: free.slice(0, Math.max(0, shareMax - own.length)), release: own.slice(shareMax) };
}
