import { ApiError, Unsupported } from './api-error.ts';
import type { StreamConfig } from './stream-config.ts';
import { withoutServerMetadata } from './stream-config.ts';
import { collide } from './subjects.ts';

export type ConsumerConfig = {
  durable_name?: string;
  name: string;
  description?: string;
  deliver_policy: 'all' | 'last' | 'new' | 'by_start_sequence' | 'by_start_time' | 'last_per_subject';
  opt_start_seq?: number;
  opt_start_time?: string;
  ack_policy: 'none' | 'explicit';
  /** Nanoseconds, as all durations of the API. */
  ack_wait?: number;
  max_deliver: number;
  filter_subject?: string;
  filter_subjects?: string[];
  replay_policy: 'instant';
  headers_only?: boolean;
  max_waiting?: number;
  max_ack_pending?: number;
  deliver_subject?: string;
  idle_heartbeat?: number;
  inactive_threshold?: number;
  num_replicas: number;
  mem_storage?: boolean;
  metadata?: Record<string, string>;
};

const ACK_WAIT_NANOS = 30_000_000_000;
const INACTIVE_THRESHOLD_NANOS = 5_000_000_000;
const MAX_ACK_PENDING = 1_000;
const MAX_WAITING = 512;
const KNOWN = new Set([
  ...['durable_name', 'name', 'description', 'deliver_policy', 'opt_start_seq', 'opt_start_time', 'ack_policy', 'ack_wait'],
  ...['max_deliver', 'filter_subject', 'filter_subjects', 'replay_policy', 'headers_only', 'max_waiting', 'max_ack_pending'],
  ...['deliver_subject', 'idle_heartbeat', 'inactive_threshold', 'num_replicas', 'mem_storage', 'metadata'],
]);
const DELIVER_POLICIES = new Set(['all', 'last', 'new', 'by_start_sequence', 'by_start_time', 'last_per_subject']);

/** The settings of a request with the defaults of nats-server, in the order in which it answers them. */
export function consumerConfig(name: string, request: Record<string, unknown>): ConsumerConfig {
  for (const member of Object.keys(request)) if (!KNOWN.has(member)) throw new Unsupported(`the consumer setting ${member}`);
  const given = request as Partial<ConsumerConfig>;
  const { ack_policy = 'none', replay_policy = 'instant', deliver_policy = 'all', deliver_subject } = given;
  if (ack_policy !== 'none' && ack_policy !== 'explicit') throw new Unsupported(`the ack policy ${ack_policy}`);
  if (replay_policy !== 'instant') throw new Unsupported(`the replay policy ${replay_policy}`);
  if (!DELIVER_POLICIES.has(deliver_policy)) throw new Unsupported(`the deliver policy ${deliver_policy}`);
  const isExplicit = ack_policy === 'explicit';
  const inactive = given.inactive_threshold || (given.durable_name ? 0 : INACTIVE_THRESHOLD_NANOS);
  const config: ConsumerConfig = {
    ...(given.durable_name && { durable_name: given.durable_name }),
    name,
    ...(given.description && { description: given.description }),
    deliver_policy,
    ...(given.opt_start_seq && { opt_start_seq: given.opt_start_seq }),
    ...(given.opt_start_time && { opt_start_time: given.opt_start_time }),
    ack_policy,
    ...(isExplicit && { ack_wait: given.ack_wait || ACK_WAIT_NANOS }),
    max_deliver: given.max_deliver || -1,
    ...(given.filter_subject && { filter_subject: given.filter_subject }),
    ...(given.filter_subjects?.length && { filter_subjects: [...given.filter_subjects] }),
    replay_policy,
    ...(given.headers_only && { headers_only: true }),
    ...(!deliver_subject && { max_waiting: given.max_waiting || MAX_WAITING }),
    ...(isExplicit && { max_ack_pending: given.max_ack_pending || MAX_ACK_PENDING }),
    ...(deliver_subject && { deliver_subject }),
    ...(given.idle_heartbeat && { idle_heartbeat: given.idle_heartbeat }),
    ...(inactive > 0 && { inactive_threshold: inactive }),
    num_replicas: given.num_replicas ?? 0,
    ...(given.mem_storage && { mem_storage: true }),
  };
  const metadata = withoutServerMetadata(given.metadata ?? {});
  check(config);
  return Object.keys(metadata).length > 0 ? { ...config, metadata } : config;
}

function check(config: ConsumerConfig): void {
  const { filter_subject, filter_subjects = [], deliver_policy } = config;
  if (filter_subject !== undefined && filter_subjects.length > 0)
    throw new ApiError(400, 10136, 'consumer cannot have both FilterSubject and FilterSubjects specified');
  if (filter_subjects.some((one, index) => filter_subjects.some((other, at) => at < index && collide(one, other))))
    throw new ApiError(400, 10138, 'consumer subject filters cannot overlap');
  if (deliver_policy === 'last_per_subject' && filtersOf(config).length === 0) {
    const reason = 'consumer delivery policy is deliver last per subject, but optional filter subject is not set';
    throw new ApiError(400, 10094, reason);
  }
}

/** Throws if a stream cannot have such a consumer, whether it exists or not. */
export function checkForRetention({ ack_policy, deliver_subject }: ConsumerConfig, { retention }: StreamConfig): void {
  if (retention === 'workqueue' && ack_policy === 'none' && deliver_subject === undefined)
    throw new ApiError(400, 10084, 'consumer in pull mode requires explicit ack policy on workqueue stream');
}

/** Throws if nats-server does not add the consumer to the stream. */
export function checkForStream(config: ConsumerConfig, stream: StreamConfig, others: readonly ConsumerConfig[]): void {
  if (stream.retention !== 'workqueue') return;
  if (config.ack_policy !== 'explicit') throw new ApiError(400, 10098, 'workqueue stream requires explicit ack');
  if (config.deliver_policy !== 'all') throw new ApiError(400, 10101, 'consumer must be deliver all on workqueue stream');
  if (others.length === 0) return;
  if (filtersOf(config).length === 0)
    throw new ApiError(400, 10099, 'multiple non-filtered consumers not allowed on workqueue stream');
  checkUnique(config, others);
}

/** Throws if another consumer of a work queue takes a message that this one takes. A consumer that loses its filter by an update passes. */
export function checkUnique(config: ConsumerConfig, others: readonly ConsumerConfig[]): void {
  const takes = (other: ConsumerConfig, filter: string) => {
    const theirs = filtersOf(other);
    return theirs.length === 0 || theirs.some(one => collide(one, filter));
  };
  if (filtersOf(config).some(filter => others.some(other => takes(other, filter))))
    throw new ApiError(400, 10100, 'filtered consumer not unique on workqueue stream');
}

/** Throws if nats-server does not allow the change. */
export function checkConsumerUpdate(from: ConsumerConfig, to: ConsumerConfig): void {
  const fixed = [
    ['deliver_policy', 'deliver policy'],
    ['mem_storage', 'storage type'],
    ['opt_start_seq', 'start sequence'],
    ['opt_start_time', 'start time'],
    ['ack_policy', 'ack policy'],
    ['max_waiting', 'max waiting'],
  ] as const;
  if (from.idle_heartbeat !== to.idle_heartbeat) throw new Unsupported('another idle_heartbeat of an existing consumer');
  for (const [member, name] of fixed)
    if (from[member] !== to[member]) throw new ApiError(500, 10012, `${name} can not be updated`);
}

export function filtersOf({ filter_subject, filter_subjects }: ConsumerConfig): string[] {
  return filter_subject === undefined ? (filter_subjects ?? []) : [filter_subject];
}
