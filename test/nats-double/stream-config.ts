import { ApiError, Unsupported } from './api-error.ts';
import { collide, isSubject, matches } from './subjects.ts';

export type StreamConfig = {
  name: string;
  description?: string;
  subjects: string[];
  retention: 'limits' | 'workqueue';
  max_consumers: number;
  max_msgs: number;
  max_bytes: number;
  /** Nanoseconds, as all durations of the API. */
  max_age: number;
  max_msgs_per_subject: number;
  max_msg_size: number;
  discard: 'old' | 'new';
  storage: 'file' | 'memory';
  num_replicas: number;
  duplicate_window: number;
  compression: 'none';
  first_seq?: number;
  republish?: { src: string; dest: string };
  allow_direct: boolean;
  mirror_direct: boolean;
  discard_new_per_subject?: boolean;
  sealed: boolean;
  deny_delete: boolean;
  deny_purge: boolean;
  allow_rollup_hdrs: boolean;
  consumer_limits: Record<string, never>;
  allow_msg_ttl: boolean;
  metadata?: Record<string, string>;
};

/** The default of nats-server, unless messages are kept for a shorter time. */
const DUPLICATE_WINDOW_NANOS = 120_000_000_000;
const KNOWN = new Set([
  ...['name', 'description', 'subjects', 'retention', 'max_consumers', 'max_msgs', 'max_bytes', 'max_age'],
  ...['max_msgs_per_subject', 'max_msg_size', 'discard', 'storage', 'num_replicas', 'duplicate_window', 'compression'],
  ...['first_seq', 'republish', 'allow_direct', 'mirror_direct', 'discard_new_per_subject', 'sealed', 'deny_delete'],
  ...['deny_purge', 'allow_rollup_hdrs', 'consumer_limits', 'allow_msg_ttl', 'metadata'],
]);
/** Settings that the double accepts only as their default, because Hopline sets nothing else. */
const FIXED = {
  mirror_direct: false,
  sealed: false,
  allow_rollup_hdrs: false,
  allow_msg_ttl: false,
  compression: 'none',
} as const;
/** Names in the metadata that nats-server answers with and does not compare. */
const REQUIRED_LEVEL = { '_nats.req.level': '0' };
const SERVER_METADATA = { ...REQUIRED_LEVEL, '_nats.level': '5', '_nats.ver': '2.15.2' };

/** The settings of a request with the defaults of nats-server. `nodes`: servers that can store a replica. */
export function streamConfig(request: Record<string, unknown>, nodes: number): StreamConfig {
  for (const name of Object.keys(request)) if (!KNOWN.has(name)) throw new Unsupported(`the stream setting ${name}`);
  const given = request as Partial<StreamConfig>;
  for (const [name, only] of Object.entries(FIXED)) {
    const value = given[name as keyof typeof FIXED];
    if (value !== undefined && value !== only) throw new Unsupported(`the stream setting ${name}: ${value}`);
  }
  const { name = '', retention = 'limits', republish } = given;
  if (name === '' || /[\s.*>/\\]/.test(name))
    throw new ApiError(400, 10052, 'stream name is required and can not contain . * > / \\');
  if (retention !== 'limits' && retention !== 'workqueue') throw new Unsupported(`the retention ${retention}`);
  const config: StreamConfig = {
    name,
    ...(given.description && { description: given.description }),
    subjects: given.subjects?.length ? [...given.subjects] : [name],
    retention,
    max_consumers: given.max_consumers || -1,
    max_msgs: given.max_msgs || -1,
    max_bytes: given.max_bytes || -1,
    max_age: given.max_age ?? 0,
    max_msgs_per_subject: given.max_msgs_per_subject || -1,
    max_msg_size: given.max_msg_size || -1,
    discard: given.discard ?? 'old',
    storage: given.storage ?? 'file',
    num_replicas: given.num_replicas || 1,
    duplicate_window: given.duplicate_window || Math.min(given.max_age || DUPLICATE_WINDOW_NANOS, DUPLICATE_WINDOW_NANOS),
    ...FIXED,
    ...(given.first_seq && { first_seq: given.first_seq }),
    ...(republish && { republish }),
    allow_direct: given.allow_direct ?? false,
    ...(given.discard_new_per_subject && { discard_new_per_subject: true }),
    deny_delete: given.deny_delete ?? false,
    deny_purge: given.deny_purge ?? false,
    consumer_limits: {},
    ...(Object.keys(given.metadata ?? {}).length > 0 && { metadata: withoutServerMetadata(given.metadata!) }),
  };
  check(config, nodes);
  return config;
}

function check(config: StreamConfig, nodes: number): void {
  if (config.num_replicas > nodes) throw new ApiError(500, 10074, 'replicas > 1 not supported in non-clustered mode');
  for (const subject of config.subjects) if (!isSubject(subject)) throw new ApiError(500, 10052, `invalid subject "${subject}"`);
  const { republish, discard, max_age, duplicate_window } = config;
  if (republish !== undefined && !(republish.src.endsWith('>') && republish.dest.endsWith('>')))
    throw new Unsupported(`the republish of ${republish.src} to ${republish.dest}`);
  if (config.discard_new_per_subject && discard !== 'new')
    throw new ApiError(500, 10052, 'discard new per subject requires discard new policy to be set');
  if (config.discard_new_per_subject && config.max_msgs_per_subject <= 0)
    throw new ApiError(500, 10052, 'discard new per subject requires max msgs per subject > 0');
  if (max_age > 0 && duplicate_window > max_age)
    throw new ApiError(500, 10052, 'duplicates window can not be larger then max age');
}

/** Throws if nats-server does not allow the change. */
export function checkUpdate(from: StreamConfig, to: StreamConfig): void {
  const invalid = (reason: string) => new ApiError(500, 10052, reason);
  if (from.retention !== to.retention)
    throw invalid('stream configuration update can not change retention policy to/from workqueue');
  if (from.storage !== to.storage) throw invalid('stream configuration update can not change storage type');
  if (from.max_consumers !== to.max_consumers) throw invalid('stream configuration update can not change MaxConsumers');
  if (from.deny_delete && !to.deny_delete) throw invalid('stream configuration update can not cancel deny message deletes');
  if (from.deny_purge && !to.deny_purge) throw invalid('stream configuration update can not cancel deny purge');
}

export function checkOverlap(config: StreamConfig, others: Iterable<StreamConfig>): void {
  for (const other of others)
    if (other.name !== config.name && other.subjects.some(theirs => config.subjects.some(ours => collide(ours, theirs))))
      throw new ApiError(400, 10065, 'subjects overlap with an existing stream');
}

/** Where a message is published again; undefined if its subject does not match. */
export function republished({ republish }: StreamConfig, subject: string): string | undefined {
  if (republish === undefined || !matches(republish.src, subject)) return undefined;
  return republish.dest.slice(0, -1) + subject.slice(republish.src.length - 1);
}

export function withoutServerMetadata(metadata: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !name.startsWith('_nats.')));
}

export function answeredMetadata(metadata: Record<string, string> | undefined, isListed = false): Record<string, string> {
  return { ...(isListed ? REQUIRED_LEVEL : SERVER_METADATA), ...metadata };
}
