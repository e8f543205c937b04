import { LEASE_HEARTBEAT_MS, LEASE_MS } from './shard-leases.ts';

/** The settings of a service that leases shards. `doc`: what happens to a process without a heartbeat for HOPLINE_LEASE_MS. */
export function leaseSettings(doc: string) {
  return {
    HOPLINE_LEASE_MS: { type: 'integer', default: LEASE_MS, min: 500, max: 60_000, unit: 'ms', doc },
    HOPLINE_LEASE_HEARTBEAT_MS: {
      type: 'integer',
      default: LEASE_HEARTBEAT_MS,
      min: 50,
      max: 10_000,
      unit: 'ms',
      doc: 'Interval of the lease heartbeat.',
    },
  } as const;
}
