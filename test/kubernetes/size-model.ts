/**
 * The needs of a load by docs/reference/capacity.md, rounded up. The size profiles of the chart are held against it; change both when
 * `npm run capacity` shows other figures.
 */

/** The pace of the streams in the profiles. */
const STREAM_TOKENS_PER_SECOND = 20;
/** CPU of a token, in microseconds, at 300 streams on two cores. `nats`: on each of three nodes, so that a leader and two replicas fit. */
export const TOKEN_US = { ingress: 30, relay: 50, supervisor: 25, nats: 60 };
/** Maximum share of a core that a process uses, so that tokens stay young. */
const CORE_SHARE = 0.8;

/** Memory of a nats-server, MiB. */
const NATS_IDLE_MIB = 60;
/** Memory for the ids of two minutes, and for the work of a running turn. */
const NATS_STREAM_MIB = 0.6;
const NATS_TASK_MIB = 1 / 1024;
/** Number of 8 MiB blocks that lists of old tasks, and writes, keep for some seconds. */
const NATS_BLOCKS_MIB = 512;
/** Share of the container's memory that GOMEMLIMIT gives to the heap. */
export const NATS_HEAP_SHARE = 0.8;

/** Bytes of an entry of the task index, the largest entry of a task. */
export const INDEX_ENTRY_BYTES = 600;

export type Load = { streams: number; tasks: number };

export function natsMib({ streams, tasks }: Load): number {
  return NATS_IDLE_MIB + NATS_BLOCKS_MIB + streams * NATS_STREAM_MIB + tasks * NATS_TASK_MIB;
}

/** Cores of all processes of a service, or of one nats-server. */
export function coresOf(service: keyof typeof TOKEN_US, { streams }: Load): number {
  return (streams * STREAM_TOKENS_PER_SECOND * TOKEN_US[service]) / 1e6 / CORE_SHARE;
}
