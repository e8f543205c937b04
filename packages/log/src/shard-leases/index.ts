export type { LeaseKeys } from './lease-view.ts';
export type { LeaseContext } from './shard-leases.ts';
export { BEAT_MS, LEASE_MS, ShardLeases } from './shard-leases.ts';
