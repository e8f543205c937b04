export { leaseSettings } from './lease-settings.ts';
export type { LeaseKeys } from './lease-view.ts';
export type { LeaseOptions } from './shard-leases.ts';
export { LEASE_HEARTBEAT_MS, LEASE_MS, ShardLeases } from './shard-leases.ts';
