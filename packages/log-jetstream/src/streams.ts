import { LIVE_PREFIX, LOG_PREFIX, RAW_PREFIX, WORK_PREFIX } from '@hopline/events';
import { LogMismatch } from '@hopline/log';
import { DiscardPolicy, JetStreamApiError, RetentionPolicy, StorageType, type StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { DUPLICATE_WINDOW_MS, type MaxAges, type MaxBytes } from './options.ts';
import { isTransient, retry } from './retry.ts';

/** The streams of the log and the buckets beside it: what is created, and what must be so when somebody else has created it. PROTOCOL.md section 7. */
export const INPUTS_STREAM = 'A2A_RAW';
export const FACTS_STREAM = 'A2A_LOG';
export const WORK_STREAM = 'A2A_WORK';
export const BUCKETS = {
  leases: 'hopline_leases',
  tasks: 'hopline_tasks',
  agents: 'hopline_agents',
  messageIds: 'hopline_message_ids',
  contexts: 'hopline_contexts',
  pushConfigs: 'hopline_push_configs',
  pushProgress: 'hopline_push_progress',
  handBacks: 'hopline_requeues',
} as const;

/** Layout of subjects and payloads. Another number is another, incompatible one. */
const FORMAT = 1;

export type StreamsOptions = { shards: number; replicas: number; maxAges: MaxAges; maxBytes: MaxBytes };

type Spec = Partial<StreamConfig> & { name: string; subjects: string[] };

/** Creates what is missing; several services may do so at the same time. Throws LogMismatch when what is there does not fit. */
export async function ensureStreams(connection: Connection, options: StreamsOptions, timeoutMs: number): Promise<void> {
  for (const spec of streamSpecs(options)) await ensureStream(connection, spec, timeoutMs);
}

/** Resolves when the log's streams answer and have a leader. */
export async function checkStreams(connection: Connection, timeoutMs: number): Promise<void> {
  const check = async (name: string) => {
    const info = await connection.jsm.streams.info(name);
    if (info.cluster && !info.cluster.leader) throw Object.assign(new Error(`${name} has no leader`), { name: 'TimeoutError' });
  };
  for (const name of [INPUTS_STREAM, FACTS_STREAM, WORK_STREAM]) await retry(connection, name, () => check(name), { timeoutMs });
}

function streamSpecs({ shards, replicas, maxAges, maxBytes }: StreamsOptions): Spec[] {
  const common = {
    // Metadata would be the place for it, but servers before 2.10 do not have it.
    description: `hopline format=${FORMAT} shards=${shards}`,
    storage: StorageType.File,
    num_replicas: replicas,
    allow_direct: true,
    deny_delete: true,
  };
  const ours = { ...common, duplicate_window: nanos(DUPLICATE_WINDOW_MS) };
  const bucket = (name: string, discard: DiscardPolicy, maxAgeMs?: number): Spec => ({
    ...common,
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    retention: RetentionPolicy.Limits,
    discard,
    max_msgs_per_subject: 1,
    max_bytes: maxBytes.keyValue,
    allow_rollup_hdrs: true,
    ...(maxAgeMs !== undefined && { max_age: nanos(maxAgeMs) }),
  });
  return [
    {
      ...ours,
      name: INPUTS_STREAM,
      subjects: [`${RAW_PREFIX}.>`],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      max_age: nanos(maxAges.inputsMs),
      max_bytes: maxBytes.inputs,
    },
    {
      ...ours,
      name: FACTS_STREAM,
      subjects: [`${LOG_PREFIX}.>`],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      max_age: nanos(maxAges.factsMs),
      max_bytes: maxBytes.facts,
      // At creation: a server of 2.9 cannot add it later.
      republish: { src: `${LOG_PREFIX}.>`, dest: `${LIVE_PREFIX}.>` },
    },
    {
      ...ours,
      name: WORK_STREAM,
      subjects: [`${WORK_PREFIX}.>`],
      retention: RetentionPolicy.Workqueue,
      // Full means refused and said so to whoever asks, never an item that vanishes.
      discard: DiscardPolicy.New,
      max_age: nanos(maxAges.factsMs),
      max_bytes: maxBytes.work,
    },
    bucket(BUCKETS.leases, DiscardPolicy.New),
    bucket(BUCKETS.agents, DiscardPolicy.New),
    bucket(BUCKETS.tasks, DiscardPolicy.Old, maxAges.factsMs),
    bucket(BUCKETS.messageIds, DiscardPolicy.Old, maxAges.factsMs),
    bucket(BUCKETS.contexts, DiscardPolicy.Old, maxAges.factsMs),
    bucket(BUCKETS.pushConfigs, DiscardPolicy.New, maxAges.factsMs),
    bucket(BUCKETS.pushProgress, DiscardPolicy.New, maxAges.factsMs),
    bucket(BUCKETS.handBacks, DiscardPolicy.Old, maxAges.factsMs),
  ];
}

const STREAM_NOT_FOUND = 10059;
/** Somebody created it in between, with other settings. */
const STREAM_NAME_IN_USE = 10058;

async function ensureStream(connection: Connection, spec: Spec, timeoutMs: number): Promise<void> {
  const { streams } = connection.jsm;
  const find = async () => {
    try {
      return (await streams.info(spec.name)).config;
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return undefined;
      throw error;
    }
  };
  const found = await retry(connection, spec.name, find, { timeoutMs });
  if (found) return requireFitting(spec, found);
  // nats.js writes into the object it is given.
  const create = async () => (await streams.add({ ...spec }).catch(asMismatch(spec))).config;
  try {
    requireEcho(spec, await retry(connection, spec.name, create, { timeoutMs }));
  } catch (error) {
    const taken = error instanceof JetStreamApiError && error.code === STREAM_NAME_IN_USE;
    const other = taken ? await retry(connection, spec.name, find, { timeoutMs }) : undefined;
    if (!other) throw error;
    requireFitting(spec, other);
  }
}

/** Refusals that come back with the status of a server's fault, but stay: no cluster to replicate in, no room. */
const LASTING = new Set([10074, 10047]);

function asMismatch(spec: Spec): (error: unknown) => never {
  return error => {
    const refused =
      error instanceof JetStreamApiError && error.code !== STREAM_NAME_IN_USE && (LASTING.has(error.code) || !isTransient(error));
    if (!refused) throw error;
    const what = `stream ${spec.name} (${spec.num_replicas} replicas, ${spec.max_bytes} bytes) cannot be created`;
    throw new LogMismatch(`${what}: ${error.message}`, { cause: error });
  };
}

/** What operators may tune on a stream that is there (ages, bytes, windows) is left alone; what the promises lean on is not. */
const FIXED = ['subjects', 'retention', 'republish', 'num_replicas', 'max_msgs_per_subject', 'storage', 'description'] as const;

function requireFitting(spec: Spec, found: StreamConfig): void {
  for (const field of FIXED) {
    if (field in spec && !same(spec[field], found[field])) throw mismatch(spec, field, found[field]);
  }
}

/** A server that does not know a field drops it without a word. */
function requireEcho(spec: Spec, found: StreamConfig): void {
  for (const field of Object.keys(spec) as (keyof Spec)[]) {
    if (!same(spec[field], found[field])) throw mismatch(spec, field, found[field]);
  }
}

/** Every setting of `wanted` is so in `found`; the server may say more. */
function same(wanted: unknown, found: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return wanted === found;
  if (typeof found !== 'object' || found === null) return false;
  if (Array.isArray(wanted)) return JSON.stringify(wanted) === JSON.stringify(found);
  return Object.entries(wanted).every(([name, value]) => same(value, (found as Record<string, unknown>)[name]));
}

const WHAT_TO_DO: Partial<Record<keyof Spec, string>> = {
  description:
    'start every service with the shards the streams were created with, or use another NATS account for another cluster',
  num_replicas: 'start every service with that number of replicas, or change the stream with `nats stream edit --replicas`',
};

function mismatch(spec: Spec, field: keyof Spec, found: unknown): LogMismatch {
  const what = `stream ${spec.name} has ${field} ${JSON.stringify(found ?? null)}, expected ${JSON.stringify(spec[field])}`;
  return new LogMismatch(
    `${what}: ${WHAT_TO_DO[field] ?? 'it was not created by this Hopline; use another NATS account, or remove it'}`,
  );
}
