/** What a process knows of the leases: who lives, and who owns which shard (undefined: nobody). */
export type Leases = { shards: number; live: ReadonlySet<string>; owners: ReadonlyMap<number, string> };

/** What this process should do now to hold its fair share and no more. */
export type SharePlan = { take: number[]; release: number[] };

/**
 * Fair share without a coordinator: nobody holds more than ceil(shards / live processes); one that holds more lets the excess go, one that holds less
 * takes what is free. Two processes may want the same free shard: the lease's revision lets one of them have it.
 */
export function planShare(leases: Leases, me: string): SharePlan {
  const mine: number[] = [];
  const free: number[] = [];
  for (let shard = 0; shard < leases.shards; shard++) {
    const owner = leases.owners.get(shard);
    if (owner === me) mine.push(shard);
    else if (owner === undefined || !leases.live.has(owner)) free.push(shard);
  }
  const most = Math.ceil(leases.shards / Math.max(1, leases.live.size));
  return { take: free.slice(0, Math.max(0, most - mine.length)), release: mine.slice(most) };
}
