export type { LeaseKeys } from './lease-view.ts';
export type { LeaseOptions } from './shard-leases.ts';
export { HEARTBEAT_INTERVAL_MS, LEASE_MS, ShardLeases } from './shard-leases.ts';
