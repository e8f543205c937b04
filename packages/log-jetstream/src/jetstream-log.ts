import { SHARDS_MAX } from '@hopline/events';
import {
  ATTEMPTS_MAX_DEFAULT,
  type Log,
  LogDenied,
  LogMismatch,
  REQUEUES_MAX_DEFAULT,
  ROLE_ITEMS_MAX_DEFAULT,
  TENANT_ITEMS_MAX_DEFAULT,
  TENANT_SLOTS_SHARE_DEFAULT,
} from '@hopline/log';
import { withinMs } from '@hopline/telemetry';
import { requireServer } from './capabilities.ts';
import { type Connection, type ConnectOptions, openConnection } from './connection.ts';
import { DirectGets } from './direct-gets.ts';
import { ENTRY_CHECKS, type EntryCheck } from './entry-checks.ts';
import { JetStreamKeyValue } from './key-value.ts';
import { LAYOUT_TIMES, requireWanted, watchLayouts } from './layouts.ts';
import { placeLeaders } from './leader-placement.ts';
import { checkLogin } from './login-check.ts';
import { BUCKETS, LogNames } from './names.ts';
import {
  ACK_WAIT_MS,
  CLAIM_MS,
  type JetStreamLogOptions,
  MAX_AGES_DEFAULT,
  MAX_BYTES_DEFAULT,
  OPEN_TIMEOUT_MS,
  QUEUE_TURNS_MAX_DEFAULT,
  UNCLAIMED_WAIT_MS,
} from './options.ts';
import { NatsPresence } from './presence.ts';
import { Publisher } from './publisher.ts';
import { purgeTask } from './purge-task.ts';
import { ReadClient } from './relayed-reads/read-client.ts';
import { RelayedEntries } from './relayed-reads/relayed-buckets.ts';
import { RelayedStreams } from './relayed-reads/relayed-streams.ts';
import type { EntryBucket } from './relayed-reads/requests.ts';
import { removeUnknown } from './remove-unknown.ts';
import { RequeueCounts } from './requeue-counts.ts';
import { restoreLost } from './restore-lost.ts';
import { watchRetention } from './retention.ts';
import { checkStreams, ensureStreams } from './streams.ts';
import { openTaskParts } from './task-parts.ts';
import { STREAM_CREATOR, streamsNeededBy } from './users.ts';
import { NatsWakeUps } from './wake-ups.ts';
import { JetStreamWork } from './work.ts';

/** Part of the server's max_payload that is reserved for headers. */
const HEADER_BYTES_MAX = 16 * 1024;
const CHECK_TIMEOUT_MS = 3_000;

/**
 * Opens the log: connects, creates missing streams, and checks existing ones. Rejects with LogUnavailable (no server or no
 * JetStream in time) or LogMismatch (server too old, streams created with other settings).
 */
export async function openJetStreamLog(options: JetStreamLogOptions): Promise<Log> {
  const { servers, name, credentials, tls, connect, openTimeoutMs = OPEN_TIMEOUT_MS, onEvent = () => {} } = options;
  const { shards, groups, compactsRecords = false } = options;
  const replicas = options.replicas ?? 1;
  if (shards !== undefined && (!Number.isInteger(shards) || shards < 1 || shards > SHARDS_MAX))
    throw new LogMismatch(`shards must be an integer from 1 to ${SHARDS_MAX}`);
  const names = new LogNames(options.prefix, groups);
  const { user } = options;
  const connection = await openConnection({
    servers,
    name,
    user,
    credentials,
    rejectedMsMax: options.rejectedMsMax,
    tls,
    names,
    replicas,
    timeoutMs: openTimeoutMs,
    connect,
    onEvent,
  });
  try {
    requireServer(connection.nc.info?.version ?? 'unknown', replicas);
    const client = user?.startsWith('agent.') ? new ReadClient(connection, user.slice('agent.'.length)) : undefined;
    if (client !== undefined) connection.streams = new RelayedStreams(client);
    const maxAges = { ...MAX_AGES_DEFAULT, ...options.maxAges };
    const maxBytes = { ...MAX_BYTES_DEFAULT, ...options.maxBytes };
    const creates = user === undefined || user === STREAM_CREATOR;
    const payloadBytesMax = connection.nc.info?.max_payload ?? 0;
    const { layoutTimes = LAYOUT_TIMES, addsLayouts } = options;
    const streams = { creates, shards, groups, compactsRecords, layoutTimes, replicas, maxAges, maxBytes, payloadBytesMax };
    const isCompact = await ensureStreams(connection, streams, openTimeoutMs);
    if (addsLayouts) requireWanted(connection.layouts, addsLayouts.wanted);
    options.onNames?.(connection.names);
    watchLayouts(connection, { times: layoutTimes, onAdded: () => options.onNames?.(connection.names), ...addsLayouts });
    if (options.checksLogin && user !== undefined) await withinMs(checkLogin(connection, user), CHECK_TIMEOUT_MS).catch(() => {});
    if (options.restoresLost) restoreLost(connection, streams, options.restoresLost, openTimeoutMs);
    if (options.watchesRetention) watchRetention(connection, options.onFirstEntry);
    if (options.removesUnknown) removeUnknown(connection, options.removesUnknown);
    if (options.placesLeaders) placeLeaders(connection, options.placesLeaders);
    return assemble(connection, client, isCompact, options);
  } catch (error) {
    await connection.close();
    throw error instanceof LogDenied ? new LogMismatch(error.message, { cause: error }) : error;
  }
}

/** Connects, checks the server and disconnects. Rejects like openJetStreamLog. */
export async function checkServer(options: Omit<ConnectOptions, 'onEvent' | 'names'> & { replicas: number }): Promise<void> {
  const connection = await openConnection({ ...options, names: new LogNames(), onEvent: () => {} });
  try {
    requireServer(connection.nc.info?.version ?? 'unknown', options.replicas);
  } finally {
    await connection.close();
  }
}

function assemble(connection: Connection, client: ReadClient | undefined, isCompact: boolean, options: JetStreamLogOptions): Log {
  const payloadMax = connection.nc.info?.max_payload ?? 0;
  const recordBytesMax = payloadMax - HEADER_BYTES_MAX;
  const publisher = new Publisher(connection, { recordBytesMax, ackTimeoutMs: options.ackTimeoutMs });
  const directGets = new DirectGets(connection);
  const bucket = <V>(name: string, isValid?: EntryCheck) => {
    return new JetStreamKeyValue<V>(connection, publisher, { bucket: connection.names.bucket(name), directGets, isValid });
  };
  /** A bucket from which a sub-agent reads single entries. */
  const entries = <V>(name: EntryBucket, isValid?: EntryCheck) => {
    if (client === undefined) return bucket<V>(BUCKETS[name], isValid);
    const bucketOptions = { bucket: connection.names.bucket(BUCKETS[name]), directGets, isValid };
    return new RelayedEntries<V>(client, name, connection, publisher, bucketOptions);
  };
  const tasks = openTaskParts({ connection, publisher, directGets, isCompact, client, options });
  return {
    ...tasks.parts,
    get layouts() {
      return connection.layouts;
    },
    get shards() {
      return connection.layouts.shards;
    },
    recordBytesMax,
    work: new JetStreamWork(connection, publisher, {
      requeueCounts: new RequeueCounts(entries('requeues')),
      workers: entries('requeues'),
      attemptsMax: options.attemptsMax ?? ATTEMPTS_MAX_DEFAULT,
      requeuesMax: options.requeuesMax ?? REQUEUES_MAX_DEFAULT,
      ackWaitMs: options.ackWaitMs ?? ACK_WAIT_MS,
      unclaimedWaitMs: Math.min(options.ackWaitMs ?? ACK_WAIT_MS, options.unclaimedWaitMs ?? UNCLAIMED_WAIT_MS),
      claimMs: options.claimMs ?? CLAIM_MS,
      queueTurnsMax: options.queueTurnsMax ?? QUEUE_TURNS_MAX_DEFAULT,
      roleItemsMax: options.roleItemsMax ?? ROLE_ITEMS_MAX_DEFAULT,
      tenantItemsMax: options.tenantItemsMax ?? TENANT_ITEMS_MAX_DEFAULT,
      tenantSlotsShare: options.tenantSlotsShare ?? TENANT_SLOTS_SHARE_DEFAULT,
    }),
    wakeUps: new NatsWakeUps(connection),
    presence: new NatsPresence(connection),
    agents: entries('agents'),
    messageIds: entries('messageIds', ENTRY_CHECKS.messageIds),
    contexts: entries('contexts', ENTRY_CHECKS.contexts),
    pushConfigs: bucket(BUCKETS.pushConfigs, ENTRY_CHECKS.pushConfigs),
    pushProgress: bucket(BUCKETS.pushProgress, ENTRY_CHECKS.pushProgress),
    check: async () => {
      await tasks.check();
      await checkStreams(connection, streamsNeededBy(options.user, connection.names), CHECK_TIMEOUT_MS);
    },
    checkAppends: async () => publisher.health.check(),
    purgeTask: taskId => purgeTask(connection, taskId),
    close: async () => {
      tasks.close();
      await connection.close();
    },
  };
}
