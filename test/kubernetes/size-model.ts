/**
 * What docs/reference/capacity.md says that a load needs, rounded up. The size profiles of the chart are held against it; change both when
 * `npm run capacity` shows other figures.
 */

/** Of the loads of the profiles. */
export const STREAM_TOKENS_PER_SECOND = 20;
/** CPU of a token, microseconds, at full load, in a cluster of three NATS nodes. `nats`: on each node. */
export const TOKEN_US = { ingress: 30, relay: 50, supervisor: 20, nats: 60 };
/** Share of a core that a process uses at most, so that tokens stay young. */
export const CORE_SHARE = 0.8;

/** Memory of a nats-server, MiB. */
export const NATS_IDLE_MIB = 60;
/** Ids of two minutes, and the work of a running turn. */
export const NATS_STREAM_MIB = 0.6;
export const NATS_TASK_MIB = 1 / 1024;
/** Blocks of 8 MiB that lists of old tasks and writes hold for some seconds. */
export const NATS_BLOCKS_MIB = 512;
/** Share of the container's memory that GOMEMLIMIT gives to the heap. */
export const NATS_HEAP_SHARE = 0.8;

/** Of an entry of the task index, the largest entry that each task has. */
export const INDEX_ENTRY_BYTES = 600;

export type Load = { streams: number; tasks: number };

export function natsMib({ streams, tasks }: Load): number {
  return NATS_IDLE_MIB + NATS_BLOCKS_MIB + streams * NATS_STREAM_MIB + tasks * NATS_TASK_MIB;
}

/** Cores of all processes of a service, or of one nats-server. */
export function coresOf(service: keyof typeof TOKEN_US, { streams }: Load): number {
  return (streams * STREAM_TOKENS_PER_SECOND * TOKEN_US[service]) / 1e6 / CORE_SHARE;
}
