/**
 * The leases as a process sees them: live processes, how many of them are stopping, and the owner of each shard (no entry: no owner).
 */
export type Leases = { shards: number; live: ReadonlySet<string>; leaving: number; owners: ReadonlyMap<number, string> };

/** Shards to take and to release so that this process holds exactly its fair share. */
export type SharePlan = { take: number[]; release: number[] };

/**
 * Fair share without a coordinator: no process holds more than ceil(shards / live processes that do not stop). A process with more shards
 * releases the excess, a process with fewer takes free shards. If two processes want the same free shard, the revision of the lease gives
 * it to one of them.
 *
 * `held`: the shards that this process works on. If a lease names this process but its shard is not among them (the answer to a write was
 * lost), that shard is taken first, because no other process would take it.
 */
export function planShare(leases: Leases, instance: string, held: ReadonlySet<number>): SharePlan {
  const heldShards = [...held];
  const free: number[] = [];
  for (let shard = 0; shard < leases.shards; shard++) {
    if (held.has(shard)) continue;
    const owner = leases.owners.get(shard);
    if (owner === instance) heldShards.push(shard);
    else if (owner === undefined || !leases.live.has(owner)) free.push(shard);
  }
  const shareMax = Math.ceil(leases.shards / Math.max(1, leases.live.size - leases.leaving));
  const unheld = heldShards.slice(0, shareMax).filter(shard => !held.has(shard));
  return { take: [...unheld, ...free.slice(0, Math.max(0, shareMax - heldShards.length))], release: heldShards.slice(shareMax) };
}
