import { GROUPS_DEFAULT, Layouts, LIVE_PREFIX, LOG_PREFIX, SHARDS_DEFAULT, WORK_PREFIX } from '@hopline/events';
import { LogDenied, LogMismatch, LogUnavailable } from '@hopline/log';
import {
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import { hasFirstSeq, hasStreamMetadata } from './capabilities.ts';
import { COMPACT_VERSION } from './compact-record.ts';
import type { Connection } from './connection.ts';
import {
  descriptionOf,
  FORMAT,
  factsSubjects,
  firstLayoutIn,
  inputsSubjects,
  knownUntil,
  parseDescription,
  shareOf,
} from './layouts.ts';
import { isStreamNotFound, STREAM_MISSING } from './missing-stream.ts';
import { BUCKETS, type LogNames } from './names.ts';
import {
  BUCKET_CONSUMERS_MAX,
  DUPLICATE_WINDOW_MS,
  FACTS_CONSUMERS_MAX,
  FACTS_DUPLICATE_WINDOW_MS,
  INPUTS_CONSUMERS_MAX,
  INPUTS_DUPLICATE_WINDOW_MS,
  type LayoutTimes,
  LEASES_AGE_MS,
  type MaxAges,
  type MaxBytes,
  WORK_CONSUMERS_MAX,
  WORK_ITEMS_PER_SUBJECT_MAX,
} from './options.ts';
import { isTransient, pause, retry } from './retry.ts';

/** The streams and buckets of the log: how they are created, and which settings of existing ones must match. PROTOCOL.md section 7. */

/** Name and value in the metadata of the facts stream which show that relays store compact records in it. PROTOCOL.md section 4.5. */
const RECORDS_KEY = 'hopline.records';
const COMPACT_RECORDS = `${COMPACT_VERSION}`;

/**
 * `creates`: whether missing streams are created; otherwise they are awaited. `shards` and `groups`: numbers of the first layout. Absent:
 * the numbers of the existing streams or, if there are none, the defaults. `compactsRecords`: from now on, records of an existing stream
 * are compact.
 */
export type StreamsOptions = {
  creates: boolean;
  shards: number | undefined;
  groups: number | undefined;
  compactsRecords: boolean;
  layoutTimes: LayoutTimes;
  replicas: number;
  maxAges: MaxAges;
  maxBytes: MaxBytes;
  /** The largest message that clients may send to the server, with its headers. */
  payloadBytesMax: number;
};

type Spec = Partial<StreamConfig> & { name: string; subjects: string[] };

/**
 * Creates missing streams, or waits until another process has created them. Several processes may create them at the same time. The creator
 * also adds missing limits to existing streams. Throws LogMismatch when an existing stream does not match. Resolves with whether relays
 * store compact records.
 */
export async function ensureStreams(connection: Connection, options: StreamsOptions, timeoutMs: number): Promise<boolean> {
  const readAtMs = Date.now();
  const layouts = await layoutsOf(connection, options, timeoutMs);
  connection.useLayouts(layouts, knownUntil(readAtMs, options.layoutTimes));
  const { names } = connection;
  const hasMetadata = hasStreamMetadata(connection.nc.info?.version ?? '');
  const specs = streamSpecs(names, { ...options, hasMetadata });
  if (!options.creates) {
    for (const spec of specs) requireMatch(spec, (await awaitStream(connection, spec.name, timeoutMs)).config);
  } else {
    for (const [group, stream] of names.inputsStreams.entries()) {
      if (!(await isRebuilt(connection, group, timeoutMs))) continue;
      beginAtNow(specs, stream);
      connection.onEvent({ type: 'inputs-rebuilt', stream });
    }
    for (const spec of specs) await ensureStream(connection, spec, timeoutMs);
    if (layouts.list.length > 1) await copyLayouts(connection, layouts, timeoutMs);
  }
  const facts = await Promise.all(names.factsStreams.map(name => awaitStream(connection, name, timeoutMs)));
  const plain = facts.filter(({ config }) => config.metadata?.[RECORDS_KEY] !== COMPACT_RECORDS);
  if (plain.length === 0) return true;
  if (!options.creates || !options.compactsRecords) return false;
  if (!hasMetadata) throw new LogMismatch('compact records need nats-server 2.10 or newer');
  for (const { config } of plain) {
    const metadata = { ...config.metadata, [RECORDS_KEY]: COMPACT_RECORDS };
    await retry(connection, config.name, () => connection.jsm.streams.update(config.name, { metadata }), { timeoutMs });
  }
  return true;
}

/** The stored layouts. The first one has the numbers of the settings or, without a setting, those that are stored; a mismatch is reported by `requireMatch`. */
async function layoutsOf(connection: Connection, { creates, ...set }: StreamsOptions, timeoutMs: number): Promise<Layouts> {
  const stored = await storedLayouts(connection, creates, timeoutMs);
  const [first, ...later] = stored?.list ?? [];
  const shards = set.shards ?? first?.shards ?? SHARDS_DEFAULT;
  const groups = set.groups ?? first?.groups ?? GROUPS_DEFAULT;
  try {
    return new Layouts([{ begins: 0, shards, groups }, ...later]);
  } catch (error) {
    throw new LogMismatch((error as Error).message, { cause: error });
  }
}

/** The layouts in the description of an existing stream. `requireMatch` reports a description of another format. */
async function storedLayouts(connection: Connection, creates: boolean, timeoutMs: number): Promise<Layouts | undefined> {
  const { inputsStreams, factsStreams, workStream } = connection.names;
  // The first stream decides. The others have copies, in case it is missing.
  const firsts = [inputsStreams[0]!, factsStreams[0]!, workStream];
  const found = creates
    ? await Promise.all(firsts.map(name => findStream(connection, name, timeoutMs)))
    : [await awaitStream(connection, inputsStreams[0]!, timeoutMs)];
  for (const stream of found) {
    const layouts = parseDescription(stream?.config.description ?? '');
    if (layouts !== undefined) return layouts;
  }
  return undefined;
}

/** Gives the connection the names of the existing streams, for tools that need no other setting of the log. */
export async function useStoredLayouts(connection: Connection): Promise<void> {
  const found = await findStream(connection, connection.names.inputsStreams[0]!, FIND_MS_MAX);
  connection.useLayouts(parseDescription(found?.config.description ?? '') ?? Layouts.one(SHARDS_DEFAULT));
}

/** An earlier call may have stored the layouts in only the first stream. */
async function copyLayouts(connection: Connection, layouts: Layouts, timeoutMs: number): Promise<void> {
  const description = descriptionOf(layouts);
  for (const name of [connection.names.factsStreams[0]!, connection.names.workStream]) {
    const found = await findStream(connection, name, timeoutMs);
    if (found === undefined || found.config.description === description) continue;
    await retry(connection, name, () => connection.jsm.streams.update(name, { description }), { timeoutMs });
  }
}

/**
 * Tasks and shards store the sequences of inputs that they have folded. When the cluster already has tasks, a new stream of inputs
 * therefore begins after every sequence that its predecessor can have had: at the current time in microseconds.
 */
const REBUILT_SEQS_PER_MS = 1_000;

async function isRebuilt(connection: Connection, group: number, timeoutMs: number): Promise<boolean> {
  if (!hasFirstSeq(connection.nc.info?.version ?? '')) return false;
  const { names } = connection;
  const [inputs, facts] = await Promise.all([
    findStream(connection, names.inputsStreams[group]!, timeoutMs),
    findStream(connection, names.factsStreams[group]!, timeoutMs),
  ]);
  return inputs === undefined && facts !== undefined && facts.state.last_seq > 0;
}

function beginAtNow(specs: readonly Spec[], stream: string): void {
  specs.find(({ name }) => name === stream)!.first_seq = Date.now() * REBUILT_SEQS_PER_MS;
}

/**
 * Creates streams that were lost while this process ran, with its layouts and settings, and changes no other stream. Resolves with those
 * that it created, because another relay may create some at the same time. If an existing stream has other layouts or settings, this is a
 * different log: it rejects with LogMismatch before it creates anything.
 */
export async function createLost(
  connection: Connection,
  options: StreamsOptions,
  lost: readonly string[],
  timeoutMs: number,
): Promise<string[]> {
  const existing = new Map<string, StreamConfig>();
  for (const name of connection.names.allStreams()) {
    const found = lost.includes(name) ? undefined : await findStream(connection, name, timeoutMs);
    if (found !== undefined) existing.set(name, found.config);
  }
  const names = connection.names.with(newestLayouts(connection, existing));
  const specs = streamSpecs(names, { ...options, hasMetadata: hasStreamMetadata(connection.nc.info?.version ?? '') });
  for (const spec of specs) {
    const found = existing.get(spec.name);
    if (found !== undefined) requireMatch(spec, found);
  }
  const created: string[] = [];
  for (const spec of specs.filter(({ name }) => lost.includes(name))) {
    // Relays and other processes still have sequences of the lost stream in memory, even if all streams were lost.
    if (names.inputsStreams.includes(spec.name) && hasFirstSeq(connection.nc.info?.version ?? '')) beginAtNow(specs, spec.name);
    if (await createStream(connection, spec, timeoutMs)) created.push(spec.name);
  }
  return created;
}

/** The layouts of this process, or those of an existing stream if another relay has added some since. */
function newestLayouts({ names, layouts }: Connection, existing: ReadonlyMap<string, StreamConfig>): Layouts {
  let newest = layouts;
  for (const name of [names.inputsStreams[0]!, names.factsStreams[0]!, names.workStream]) {
    const stored = parseDescription(existing.get(name)?.description ?? '');
    if (stored === undefined) continue;
    const [shorter, longer] = stored.list.length > newest.list.length ? [newest, stored] : [stored, newest];
    if (!descriptionOf(longer).startsWith(descriptionOf(shorter)))
      throw new LogMismatch(`stream ${name} has layouts that this process does not know`);
    newest = longer;
  }
  return newest;
}

/** Resolves when these streams answer and have a leader. If some do not exist, it rejects at once and names them. */
export async function checkStreams(connection: Connection, names: readonly string[], timeoutMs: number): Promise<void> {
  const check = async (name: string) => {
    const info = await findOnce(connection, name);
    if (info?.cluster && !info.cluster.leader) throw Object.assign(new Error(`${name} has no leader`), { name: 'TimeoutError' });
    return info !== undefined;
  };
  const exist = await Promise.all(names.map(name => retry(connection, name, () => check(name), { timeoutMs })));
  const missing = names.filter((_, index) => !exist[index]);
  if (missing.length > 0) throw new LogUnavailable(`${missing.join(', ')}: ${STREAM_MISSING}`);
}

type SpecOptions = StreamsOptions & { hasMetadata: boolean };

function streamSpecs(names: LogNames, options: SpecOptions): Spec[] {
  const { hasMetadata, replicas, maxAges, maxBytes, payloadBytesMax } = options;
  const { layouts } = names;
  // Stream metadata would be a better place, but earlier versions of Hopline expect exactly this description.
  const description = descriptionOf(layouts);
  const common = {
    description: firstLayoutIn(description),
    storage: StorageType.File,
    num_replicas: replicas,
    allow_direct: true,
    deny_delete: true,
  };
  const bucket = (name: string, discard: DiscardPolicy, maxAgeMs?: number): Spec => ({
    ...common,
    name: `KV_${names.bucket(name)}`,
    subjects: [`$KV.${names.bucket(name)}.>`],
    retention: RetentionPolicy.Limits,
    discard,
    max_msgs_per_subject: 1,
    max_bytes: maxBytes.keyValue,
    max_consumers: BUCKET_CONSUMERS_MAX,
    // Otherwise any write with `Nats-Rollup: all` would remove all other keys.
    allow_rollup_hdrs: false,
    ...(maxAgeMs !== undefined && { max_age: nanos(maxAgeMs) }),
  });
  const shareOfGroup = (bytes: number, group: number) => shareOf(bytes, layouts.layoutOfGroup(group).groups);
  const first = { description };
  return [
    ...names.inputsStreams.map((name, group) => ({
      ...common,
      ...(group === 0 && first),
      duplicate_window: nanos(INPUTS_DUPLICATE_WINDOW_MS),
      name,
      subjects: inputsSubjects(names, layouts, group),
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      max_age: nanos(maxAges.inputsMs),
      max_bytes: shareOfGroup(maxBytes.inputs, group),
      max_consumers: INPUTS_CONSUMERS_MAX,
    })),
    ...names.factsStreams.map((name, group) => ({
      ...common,
      ...(group === 0 && first),
      ...(hasMetadata && { metadata: { [RECORDS_KEY]: COMPACT_RECORDS } }),
      duplicate_window: nanos(FACTS_DUPLICATE_WINDOW_MS),
      name,
      subjects: factsSubjects(names, layouts, group),
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      max_age: nanos(maxAges.factsMs),
      max_bytes: shareOfGroup(maxBytes.facts, group),
      max_consumers: FACTS_CONSUMERS_MAX,
      // Must be set at creation: 2.9 cannot add it later.
      republish: { src: names.subject(`${LOG_PREFIX}.>`), dest: names.subject(`${LIVE_PREFIX}.>`) },
    })),
    {
      ...common,
      ...first,
      duplicate_window: nanos(DUPLICATE_WINDOW_MS),
      name: names.workStream,
      subjects: [names.subject(`${WORK_PREFIX}.>`)],
      retention: RetentionPolicy.Workqueue,
      // When it is full, the stream rejects new work instead of dropping old items.
      discard: DiscardPolicy.New,
      max_age: nanos(maxAges.factsMs),
      max_bytes: maxBytes.work,
      max_consumers: WORK_CONSUMERS_MAX,
      // Clients can have answers of the JetStream API stored here, and those may be larger than clients' own messages may be.
      max_msg_size: payloadBytesMax,
      max_msgs_per_subject: WORK_ITEMS_PER_SUBJECT_MAX,
      discard_new_per_subject: true,
    },
    // In this bucket and the next one, each process has its own key, and the removal of a key is also an entry. Keys in use are written
    // again and again.
    bucket(BUCKETS.leases, DiscardPolicy.New, LEASES_AGE_MS),
    bucket(BUCKETS.agents, DiscardPolicy.New, maxAges.factsMs),
    bucket(BUCKETS.tasks, DiscardPolicy.Old, maxAges.factsMs),
    bucket(BUCKETS.taskLists, DiscardPolicy.Old, maxAges.factsMs),
    bucket(BUCKETS.messageIds, DiscardPolicy.Old, maxAges.factsMs),
    bucket(BUCKETS.contexts, DiscardPolicy.Old, maxAges.factsMs),
    bucket(BUCKETS.pushConfigs, DiscardPolicy.New, maxAges.factsMs),
    bucket(BUCKETS.pushProgress, DiscardPolicy.New, maxAges.factsMs),
    bucket(BUCKETS.requeues, DiscardPolicy.Old, maxAges.factsMs),
  ];
}

const FIND_MS_MAX = 5_000;
/** A retry may find that the first try has created the stream. */
const MISSING = { name: 'TimeoutError' };
/** Another service has created it in the meantime, with other settings. */
const STREAM_NAME_IN_USE = 10058;

function findStream(connection: Connection, name: string, timeoutMs: number): Promise<StreamInfo | undefined> {
  return retry(connection, name, () => findOnce(connection, name), { timeoutMs });
}

/** For callers that repeat the request themselves. */
async function findOnce(connection: Connection, name: string): Promise<StreamInfo | undefined> {
  try {
    return await connection.streams.info(name);
  } catch (error) {
    if (isStreamNotFound(error)) return undefined;
    throw error;
  }
}

function awaitStream(connection: Connection, name: string, timeoutMs: number): Promise<StreamInfo> {
  const find = async () => {
    const found = await findOnce(connection, name);
    if (found === undefined)
      throw Object.assign(new Error(`${STREAM_MISSING}: a relay creates it when it starts, or within 15 s if it runs`), MISSING);
    return found;
  };
  return retry(connection, name, find, { timeoutMs });
}

async function ensureStream(connection: Connection, spec: Spec, timeoutMs: number): Promise<void> {
  const found = await findStream(connection, spec.name, timeoutMs);
  if (found) {
    requireMatch(spec, found.config);
    if (!(await boundStream(connection, spec, found.config, timeoutMs))) void boundStreamLater(connection, spec, timeoutMs);
    return;
  }
  await createStream(connection, spec, timeoutMs);
}

/** Resolves with false if another process has created the stream in the meantime with matching settings. */
async function createStream(connection: Connection, spec: Spec, timeoutMs: number): Promise<boolean> {
  // nats.js changes its argument.
  const create = async () => (await connection.jsm.streams.add({ ...spec }).catch(asMismatch(spec))).config;
  try {
    requireEcho(spec, await retry(connection, spec.name, create, { timeoutMs }));
    return true;
  } catch (error) {
    const isTaken = error instanceof JetStreamApiError && error.code === STREAM_NAME_IN_USE;
    const other = isTaken ? await findStream(connection, spec.name, timeoutMs) : undefined;
    if (!other) throw error;
    requireMatch(spec, other.config);
    return false;
  }
}

/** Errors with a transient status that a retry cannot fix: no cluster for the replicas, insufficient storage. */
const PERMANENT = new Set([10074, 10047]);

/** The account allows fewer consumers on a stream than this stream needs. */
const MAXIMUM_CONSUMERS = 10026;

function asMismatch(spec: Spec): (error: unknown) => never {
  return error => {
    const isRefused =
      error instanceof JetStreamApiError &&
      error.code !== STREAM_NAME_IN_USE &&
      (PERMANENT.has(error.code) || !isTransient(error));
    if (!isRefused) throw error;
    const what = `stream ${spec.name} (${spec.num_replicas} replicas, ${spec.max_bytes} bytes) cannot be created`;
    const advice =
      error.code === MAXIMUM_CONSUMERS
        ? `: the JetStream limits of the NATS account must allow ${FACTS_CONSUMERS_MAX} consumers`
        : '';
    throw new LogMismatch(`${what}: ${error.message}${advice}`, { cause: error });
  };
}

/**
 * Settings that keep one client from exhausting a limit that all clients share. Streams of an earlier version lack them. Each row is a
 * separate update, because servers before 2.15 refuse to change the first (and do not limit consumers by themselves).
 */
const BOUNDS = [
  ['max_consumers'],
  ['allow_rollup_hdrs'],
  ['max_msg_size'],
  ['max_msgs_per_subject', 'discard_new_per_subject'],
  ['duplicate_window'],
] as const satisfies (keyof StreamConfig)[][];

/**
 * Adds missing limits to an existing stream. If the stream cannot be changed, it is used as it is. Resolves with false when this user lacks
 * the permission.
 */
async function boundStream(connection: Connection, spec: Spec, found: StreamConfig, timeoutMs: number): Promise<boolean> {
  const { streams } = connection.jsm;
  let isPermitted = true;
  for (const fields of BOUNDS) {
    if (!fields.some(field => isOutdated(field, spec[field], found[field]))) continue;
    const bounds = Object.fromEntries(fields.map(field => [field, spec[field]]));
    try {
      await retry(connection, spec.name, () => streams.update(spec.name, bounds), { timeoutMs });
    } catch (error) {
      if (!(error instanceof LogDenied) && !(error instanceof JetStreamApiError)) throw error;
      if (error instanceof LogDenied) isPermitted = false;
      connection.onEvent({ type: 'bounds-refused', stream: spec.name });
    }
  }
  return isPermitted;
}

/**
 * Time until the next attempt if there is no reconnect. A server that loads new permissions without a restart keeps its connections open.
 */
const DENIED_RETRY_MS = 10 * 60_000;

/**
 * Tries again after each reconnect until the change is permitted: in an upgrade the relays are replaced before the last NATS node has the
 * new version's permissions.
 */
async function boundStreamLater(connection: Connection, spec: Spec, timeoutMs: number): Promise<void> {
  for (let isPermitted = false; !isPermitted; ) {
    await pause(connection, DENIED_RETRY_MS, connection.closed);
    if (connection.closed.aborted) return;
    try {
      const found = await findStream(connection, spec.name, timeoutMs);
      isPermitted = found === undefined || (await boundStream(connection, spec, found.config, timeoutMs));
    } catch {
      // NATS was away for longer than the timeout.
    }
  }
}

/** An operator may raise a limit, but not remove it. A window is changed only if an earlier version of Hopline set it. */
function isOutdated(field: (typeof BOUNDS)[number][number], wanted: unknown, found: unknown): boolean {
  if (field === 'duplicate_window') return found === nanos(DUPLICATE_WINDOW_MS) && wanted !== undefined && wanted !== found;
  if (typeof wanted === 'number') return typeof found !== 'number' || found < wanted;
  return wanted !== undefined && wanted !== (found ?? false);
}

/** Settings on which the guarantees depend. Operators may tune all others (ages, bytes, windows) on an existing stream. */
const FIXED = ['subjects', 'retention', 'republish', 'num_replicas', 'storage', 'description'] as const;

function requireMatch(spec: Spec, found: StreamConfig): void {
  // Different numbers of shards or groups explain all other differences of a stream of Hopline.
  const isOurs = parseDescription(found.description ?? '') !== undefined;
  const isSame = firstLayoutIn(spec.description ?? '') === firstLayoutIn(found.description ?? '');
  if (isOurs && !isSame) throw mismatch(spec, 'description', found.description);
  for (const field of FIXED) {
    const isAccepted = (field === 'description' && isSame) || (field === 'subjects' && isNarrowed(spec, found));
    if (field in spec && !same(spec[field], found[field]) && !isAccepted) throw mismatch(spec, field, found[field]);
  }
  // A bucket keeps one value for each key. In the work stream this number is a limit, which operators may tune.
  const { max_msgs_per_subject: values } = spec;
  if (values === 1 && found.max_msgs_per_subject !== 1) throw mismatch(spec, 'max_msgs_per_subject', found.max_msgs_per_subject);
}

/** Whether the stream binds the subjects of its shards one by one. Making it do so is the first step of adding a layout. */
function isNarrowed({ subjects: [all = '', ...others], description }: Spec, { subjects }: StreamConfig): boolean {
  const prefix = all.slice(0, -1);
  const { shards } = parseDescription(description ?? '')?.list[0] ?? {};
  return others.length === 0 && subjects?.length === shards && subjects?.every(subject => subject.startsWith(prefix)) === true;
}

/** Throws if the server has dropped a field. Servers silently drop fields that they do not know. */
function requireEcho(spec: Spec, found: StreamConfig): void {
  for (const field of Object.keys(spec) as (keyof Spec)[]) {
    if (!same(spec[field], found[field])) throw mismatch(spec, field, found[field]);
  }
}

/** True when `found` has every member of `wanted` with an equal value. */
function same(wanted: unknown, found: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return wanted === found;
  if (typeof found !== 'object' || found === null) return false;
  if (Array.isArray(wanted)) return JSON.stringify(wanted) === JSON.stringify(found);
  return Object.entries(wanted).every(([name, value]) => same(value, (found as Record<string, unknown>)[name]));
}

const ADVICE: Partial<Record<keyof Spec, string>> = {
  description:
    'start every service with the numbers of shards and stream groups the streams were created with, or set HOPLINE_PREFIX for another cluster',
  num_replicas: 'start every service with that number of replicas, or change the stream with `nats stream edit --replicas`',
};

function mismatch(spec: Spec, field: keyof Spec, found: unknown): LogMismatch {
  const format = field === 'description' ? /^hopline format=(\d+)/.exec(String(found))?.[1] : undefined;
  if (format !== undefined && format !== `${FORMAT}`) {
    const advice = 'start the version that created it, or set HOPLINE_PREFIX for another cluster';
    return new LogMismatch(`stream ${spec.name} has format ${format}; this version of Hopline has format ${FORMAT}: ${advice}`);
  }
  const what = `stream ${spec.name} has ${field} ${JSON.stringify(found ?? null)}, expected ${JSON.stringify(spec[field])}`;
  return new LogMismatch(
    `${what}: ${ADVICE[field] ?? 'the stream was not created by this Hopline: set HOPLINE_PREFIX or use another NATS account, or remove the stream'}`,
  );
}
