import { accessSync, constants } from 'node:fs';
import { GROUPS_DEFAULT, GROUPS_MAX, type Layout, SHARDS_DEFAULT, SHARDS_MAX } from '@hopline/events';
import { ConfigError, type Setting, type Settings } from '@hopline/lifecycle';
import {
  type Log,
  LogMismatch,
  LogUnavailable,
  ROLE_ITEMS_MAX_DEFAULT,
  TENANT_ITEMS_MAX_DEFAULT,
  TENANT_SLOTS_SHARE_DEFAULT,
} from '@hopline/log';
import { type HopMetrics, LINE, type Logger, snakeWord } from '@hopline/telemetry';
import { type BackedUpStream, backUp, restore } from './backup.ts';
import { requireServer } from './capabilities.ts';
import { type Connection, openConnection } from './connection.ts';
import { checkServer, openJetStreamLog } from './jetstream-log.ts';
import { addLayout, readLayouts } from './layouts.ts';
import { LogNames, PREFIX_FORM } from './names.ts';
import {
  ACK_WAIT_MS,
  type Credentials,
  type JetStreamLogOptions,
  type LayoutSize,
  type LogEvent,
  MAX_AGES_DEFAULT,
  MAX_BYTES_DEFAULT,
  type NatsTls,
  QUEUE_TURNS_MAX_DEFAULT,
} from './options.ts';
import type { LogUser } from './users.ts';

const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;
const PERCENT = 100;
/** Lower limit of the sizes: the largest record (1 MiB by default) must fit several times. */
const bytes = { type: 'integer', min: 16 * MIB, max: 1024 ** 5, unit: 'bytes' } as const;
const file = { type: 'string', optional: true, min: 1, max: 4_096 } as const;

/** Settings of the log, common to all services. */
export const LOG_SETTINGS = {
  NATS_URL: {
    type: 'url',
    default: 'nats://127.0.0.1:4222',
    schemes: ['nats', 'tls'],
    list: true,
    doc: 'NATS servers, separated by commas. One `tls://` URL requires TLS for all.',
  },
  NATS_TLS_CA_FILE: {
    ...file,
    doc: 'Certificate authorities for the NATS server certificate (PEM); requires TLS. Default: those that Node trusts.',
  },
  NATS_TLS_CERT_FILE: {
    ...file,
    doc: 'Client certificate for NATS (PEM); requires TLS. Read at each connection, as are the other files.',
  },
  NATS_TLS_KEY_FILE: { ...file, doc: 'Private key of NATS_TLS_CERT_FILE (PEM).' },
  NATS_CREDS_FILE: {
    ...file,
    doc: 'NATS credentials file. Set at most one of NATS_CREDS_FILE, NATS_CREDS, NATS_TOKEN and NATS_USER.',
  },
  NATS_CREDS: { type: 'string', optional: true, min: 1, max: 16_384, secret: true, doc: 'Content of a NATS credentials file.' },
  NATS_TOKEN: { type: 'string', optional: true, min: 1, max: 1_024, secret: true, doc: 'NATS token.' },
  NATS_USER: { type: 'string', optional: true, min: 1, max: 256, doc: 'User name, with NATS_PASSWORD.' },
  NATS_PASSWORD: { type: 'string', optional: true, min: 1, max: 1_024, secret: true, doc: 'Password of NATS_USER.' },
  HOPLINE_NATS_REJECTED_MS: {
    type: 'integer',
    default: 5 * MINUTE_MS,
    min: 1_000,
    max: 24 * 60 * MINUTE_MS,
    unit: 'ms',
    doc: 'Time for which NATS may reject the credentials of a running service. Then it ends with code 1, because only a new process reads a changed NATS_PASSWORD, NATS_TOKEN or NATS_CREDS. With NATS_CREDS_FILE, which is read at each connection, it does not end.',
  },
  HOPLINE_PREFIX: {
    type: 'string',
    optional: true,
    form: { pattern: PREFIX_FORM, words: '1 to 32 letters, digits, _ and -' },
    doc: 'Prefix of the names of streams, subjects and buckets, the same for all services of a cluster. With different prefixes, several clusters can share one NATS account.',
  },
  HOPLINE_SHARDS: {
    type: 'integer',
    optional: true,
    min: 1,
    max: SHARDS_MAX,
    doc: `Shards of the first layout of the log, fixed when its streams are created: ${SHARDS_DEFAULT} without this setting. A service uses the number of existing streams, and refuses to start if this setting has another. HOPLINE_LAYOUTS adds layouts with other numbers.`,
  },
  HOPLINE_STREAM_GROUPS: {
    type: 'integer',
    optional: true,
    min: 1,
    max: GROUPS_MAX,
    doc: `Groups of streams over which the shards of the first layout are split, fixed when the streams are created: ${GROUPS_DEFAULT} without this setting. Each group has one stream of inputs and one of events, with leaders of their own. A service takes the number of existing streams, and refuses to start if this setting has another.`,
  },
  HOPLINE_REPLICAS: {
    type: 'integer',
    default: 1,
    min: 1,
    max: 5,
    doc: 'Replicas of each stream. More than one requires nats-server 2.11.',
  },
  HOPLINE_INPUTS_AGE_MS: {
    type: 'integer',
    default: MAX_AGES_DEFAULT.inputsMs,
    min: 10 * MINUTE_MS,
    max: 30 * 24 * 60 * MINUTE_MS,
    unit: 'ms',
    doc: 'Retention of inputs; must be longer than the longest time without a running relay. Applied when the streams are created.',
  },
  HOPLINE_TASKS_AGE_MS: {
    type: 'integer',
    default: MAX_AGES_DEFAULT.factsMs,
    min: 10 * MINUTE_MS,
    max: 3_650 * 24 * 60 * MINUTE_MS,
    unit: 'ms',
    doc: 'Retention of tasks: older events are removed, and clients that resume receive a gap event. Applied when the streams are created.',
  },
  HOPLINE_INPUTS_BYTES_MAX: {
    ...bytes,
    default: MAX_BYTES_DEFAULT.inputs,
    doc: 'Bytes of the inputs (`A2A_RAW`), of all stream groups together; beyond it the oldest are removed, whatever their age. Applied when the streams are created.',
  },
  HOPLINE_TASKS_BYTES_MAX: {
    ...bytes,
    default: MAX_BYTES_DEFAULT.facts,
    doc: 'Bytes of the events of tasks (`A2A_LOG`), of all stream groups together; beyond it the oldest are removed, whatever their age. Applied when the streams are created.',
  },
  HOPLINE_WORK_BYTES_MAX: {
    ...bytes,
    default: MAX_BYTES_DEFAULT.work,
    doc: 'Bytes of queued work (`A2A_WORK`). From three quarters of it on, servers refuse new messages with 503. Applied when the streams are created.',
  },
  HOPLINE_BUCKET_BYTES_MAX: {
    ...bytes,
    default: MAX_BYTES_DEFAULT.keyValue,
    doc: 'Bytes of each of the nine buckets (`KV_hopline_…`). Applied when the streams are created.',
  },
  HOPLINE_ROLE_ITEMS_MAX: {
    type: 'integer',
    default: ROLE_ITEMS_MAX_DEFAULT,
    min: 1,
    max: 10_000_000,
    unit: 'items',
    doc: 'Items of work that may wait or run for one role (the supervisors, or one agent); beyond it servers refuse new messages for it with 503.',
  },
  HOPLINE_TENANT_ITEMS_MAX: {
    type: 'integer',
    default: TENANT_ITEMS_MAX_DEFAULT,
    min: 1,
    max: 10_000_000,
    unit: 'items',
    doc: 'Items of work of one tenant (or of one caller without a tenant) that may wait or run for one role; beyond it servers refuse its new messages for the role with 429.',
  },
  HOPLINE_TENANT_SLOTS_PERCENT: {
    type: 'integer',
    default: PERCENT * TENANT_SLOTS_SHARE_DEFAULT,
    min: 1,
    max: PERCENT,
    unit: 'percent',
    doc: 'Share of HOPLINE_SLOTS of a supervisor or agent that the work of one tenant (or of one caller without a tenant) may take. Work without an owner may take all.',
  },
  HOPLINE_ACK_WAIT_MS: {
    type: 'integer',
    default: ACK_WAIT_MS,
    min: 500,
    max: 10 * MINUTE_MS,
    unit: 'ms',
    doc: 'Time without an answer after which the work of a supervisor or agent goes to another process of its role: one that is frozen, or whose path to NATS is cut. The work of a process that is dead goes to another one after about a second.',
  },
  HOPLINE_QUEUE_TURNS_MAX: {
    type: 'integer',
    default: QUEUE_TURNS_MAX_DEFAULT,
    min: 1,
    max: 1_000_000,
    unit: 'items',
    doc: 'Items of work of one queue of a role that run at the same time in all its processes, however many slots they have: one queue for work without an owner, eight for the work of tenants. The process that starts last decides.',
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type LogSettings = Settings<typeof LOG_SETTINGS>;

/** A full stream or a missing permission may refuse thousands of writes a second. Each kind is logged once in this time. */
const REPEATED_LINE_MS = 10_000;

/** `user`: the NATS user as which the service connects. */
export type OpenOptions = {
  user: LogUser;
  name: string;
  logger: Logger;
  metrics?: HopMetrics;
  watchesRetention?: boolean;
  /** As in JetStreamLogOptions. */
  compactsRecords?: boolean;
  /** Absent: nothing is removed. */
  removesUnknown?: JetStreamLogOptions['removesUnknown'];
  /** Absent: the leaders of the streams stay where they are. */
  placesLeaders?: JetStreamLogOptions['placesLeaders'];
  addsLayouts?: JetStreamLogOptions['addsLayouts'];
  restoresLost?: JetStreamLogOptions['restoresLost'];
  openTimeoutMs?: JetStreamLogOptions['openTimeoutMs'];
};

/**
 * Opens the log of a service; logs its connection events and counts shortages of room. Rejects with ConfigError when settings
 * contradict each other, the server or its streams, and when a file is missing; with LogUnavailable of one sentence when NATS
 * cannot be used. Throws an uncaught error, which ends the process, when NATS has rejected the credentials for HOPLINE_NATS_REJECTED_MS.
 */
export async function openFromSettings(settings: LogSettings, openOptions: OpenOptions): Promise<Log> {
  const {
    user,
    name,
    logger,
    metrics,
    watchesRetention = false,
    compactsRecords = false,
    removesUnknown,
    placesLeaders,
    addsLayouts,
    restoresLost,
    openTimeoutMs,
  } = openOptions;
  const startAtZero = (names: LogNames) => {
    if (metrics !== undefined) startShortagesAtZero(metrics, names, watchesRetention);
    if (metrics !== undefined && removesUnknown !== undefined) startUnknownAtZero(metrics, names);
  };
  startAtZero(new LogNames(settings.HOPLINE_PREFIX, settings.HOPLINE_STREAM_GROUPS));
  let isConnected = false;
  metrics?.logConnected.observe(() => [[isConnected ? 1 : 0, {}]]);
  let factsStreams: readonly string[] = [];
  const firstEntries = new Map<string, number>();
  if (watchesRetention)
    metrics?.logFirstTimestamp.observe(() => [...firstEntries].map(([stream, at]) => [at / 1_000, { stream }]));
  const lineAtMs = { full: Number.NEGATIVE_INFINITY, denied: Number.NEGATIVE_INFINITY };
  const options = {
    ...connectionOf(settings),
    user,
    name,
    rejectedMsMax: settings.HOPLINE_NATS_REJECTED_MS,
    prefix: settings.HOPLINE_PREFIX,
    ...(settings.HOPLINE_SHARDS !== undefined && { shards: settings.HOPLINE_SHARDS }),
    ...(settings.HOPLINE_STREAM_GROUPS !== undefined && { groups: settings.HOPLINE_STREAM_GROUPS }),
    compactsRecords,
    replicas: settings.HOPLINE_REPLICAS,
    maxBytes: {
      inputs: settings.HOPLINE_INPUTS_BYTES_MAX,
      facts: settings.HOPLINE_TASKS_BYTES_MAX,
      work: settings.HOPLINE_WORK_BYTES_MAX,
      keyValue: settings.HOPLINE_BUCKET_BYTES_MAX,
    },
    roleItemsMax: settings.HOPLINE_ROLE_ITEMS_MAX,
    tenantItemsMax: settings.HOPLINE_TENANT_ITEMS_MAX,
    tenantSlotsShare: settings.HOPLINE_TENANT_SLOTS_PERCENT / PERCENT,
    maxAges: { inputsMs: settings.HOPLINE_INPUTS_AGE_MS, factsMs: settings.HOPLINE_TASKS_AGE_MS },
    ackWaitMs: settings.HOPLINE_ACK_WAIT_MS,
    queueTurnsMax: settings.HOPLINE_QUEUE_TURNS_MAX,
    watchesRetention,
    onFirstEntry: (stream: string, firstAt: number) => {
      if (factsStreams.includes(stream)) firstEntries.set(stream, firstAt);
    },
    ...(removesUnknown && { removesUnknown }),
    ...(placesLeaders && { placesLeaders }),
    ...(restoresLost && { restoresLost }),
    ...(openTimeoutMs !== undefined && { openTimeoutMs }),
    ...(addsLayouts && { addsLayouts }),
    onNames: (names: LogNames) => {
      factsStreams = names.factsStreams;
      startAtZero(names);
    },
    onEvent: (event: LogEvent) => {
      if (event.type === 'disconnected' || event.type === 'reconnected') isConnected = event.type === 'reconnected';
      if ('count' in event) metrics?.unknownRemoved.add(event.count, { stream: event.stream, kind: snakeWord(event.type) });
      else if ('stream' in event && event.type !== 'bounds-refused' && event.type !== 'leader-moved')
        metrics?.logShortages.add(1, { stream: event.stream, reason: snakeWord(event.type) });
      else metrics?.logEvents.add(1, { kind: snakeWord(event.type) });
      if (event.type === 'dead-letter')
        metrics?.deadLetters.add(1, { agent: event.role.replace(/^agent\./, ''), reason: 'undeliverable' });
      if (event.type === 'full' || event.type === 'denied') {
        if (performance.now() - lineAtMs[event.type] < REPEATED_LINE_MS) return;
        lineAtMs[event.type] = performance.now();
      }
      report(logger, event);
      if (event.type === 'rejected')
        setImmediate(() => {
          throw new LogUnavailable(event.message);
        });
    },
  };
  const log = await openJetStreamLog(options).catch(asConfigError);
  isConnected = true;
  return log;
}

/** Counters are created at start: one that appears with its first event would hide that event from every rate. */
function startShortagesAtZero({ logShortages }: HopMetrics, names: LogNames, watchesRetention: boolean): void {
  const reasons = ['full', ...(watchesRetention ? (['nearly_full', 'removes_by_bytes'] as const) : [])] as const;
  for (const stream of names.allStreams()) for (const reason of reasons) logShortages.add(0, { stream, reason });
  for (const reason of ['inputs_rebuilt', 'inputs_behind'] as const)
    for (const stream of names.inputsStreams) logShortages.add(0, { stream, reason });
}

function startUnknownAtZero({ unknownRemoved }: HopMetrics, names: LogNames): void {
  for (const stream of names.allStreams()) unknownRemoved.add(0, { stream, kind: 'unknown_consumers' });
  unknownRemoved.add(0, { stream: names.workStream, kind: 'unknown_work' });
}

/** How long `checkNats` waits for a server that is starting. */
const CHECK_MS_MAX = 2_000;

/** Connects once and disconnects. Rejects with one sentence if services could not open the log with these settings. */
export async function checkNats(settings: LogSettings): Promise<void> {
  const connection = connectionOf(settings);
  const options = { ...connection, replicas: settings.HOPLINE_REPLICAS, name: 'hopline-check', timeoutMs: CHECK_MS_MAX };
  await checkServer(options).catch(asConfigError);
}

export type AddLayoutOptions = { size: LayoutSize | undefined; onLayout: (layout: Layout) => void };

/**
 * Adds a layout to the log while the cluster runs; without a size it changes nothing. Reports each layout. Needs the user `admin`. Rejects like
 * openFromSettings.
 */
export async function addLayoutFromSettings(settings: LogSettings, { size, onLayout }: AddLayoutOptions): Promise<void> {
  await connected(settings, async connection => {
    const layouts = size === undefined ? await readLayouts(connection) : await addLayout(connection, size);
    for (const layout of layouts.list) onLayout(layout);
  });
}

export type BackupOptions = { folder: string; onStream: (stream: BackedUpStream) => void };

/** Writes a backup of the log into a folder, while the cluster runs. Needs the user `admin`. Rejects like openFromSettings. */
export async function backUpFromSettings(settings: LogSettings, { folder, onStream }: BackupOptions): Promise<void> {
  await connected(settings, connection => backUp(connection, folder, onStream));
}

/** Restores a backup into a server that has none of its streams. Needs the user `admin`. Rejects as openFromSettings. */
export async function restoreFromSettings(settings: LogSettings, { folder, onStream }: BackupOptions): Promise<void> {
  await connected(settings, connection => restore(connection, { folder, replicas: settings.HOPLINE_REPLICAS }, onStream));
}

async function connected(settings: LogSettings, use: (connection: Connection) => Promise<unknown>): Promise<void> {
  const names = new LogNames(settings.HOPLINE_PREFIX);
  const options = { ...connectionOf(settings), name: 'hopline-backup', names, timeoutMs: CHECK_MS_MAX, onEvent: () => {} };
  try {
    const connection = await openConnection(options);
    try {
      requireServer(connection.nc.info?.version ?? 'unknown', settings.HOPLINE_REPLICAS);
      await use(connection);
    } finally {
      await connection.close();
    }
  } catch (error) {
    asConfigError(error);
  }
}

function connectionOf(settings: LogSettings): Pick<JetStreamLogOptions, 'servers' | 'credentials' | 'tls'> {
  const credentials = credentialsOf(settings);
  const tls = tlsOf(settings);
  requireFiles(settings);
  return { servers: settings.NATS_URL, ...(credentials && { credentials }), ...(tls && { tls }) };
}

/** Faults that a restart cannot repair are faults of the settings. */
function asConfigError(error: unknown): never {
  if (error instanceof LogMismatch) throw new ConfigError([error.message]);
  if (error instanceof LogUnavailable && error.message.includes('unable to parse credentials'))
    throw new ConfigError(['NATS_CREDS_FILE or NATS_CREDS does not contain NATS credentials']);
  throw error;
}

/** Files are read at each connection, but a file that is missing at the start is a fault of the settings. */
function requireFiles(settings: LogSettings): void {
  const names = ['NATS_TLS_CA_FILE', 'NATS_TLS_CERT_FILE', 'NATS_TLS_KEY_FILE', 'NATS_CREDS_FILE'] as const;
  const faults = names.flatMap(name => {
    const path = settings[name];
    if (path === undefined) return [];
    try {
      accessSync(path, constants.R_OK);
      return [];
    } catch (error) {
      return [`${name}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`];
    }
  });
  if (faults.length > 0) throw new ConfigError(faults);
}

function credentialsOf(settings: LogSettings): Credentials | undefined {
  const { NATS_CREDS: creds, NATS_CREDS_FILE: credsFile, NATS_TOKEN: token, NATS_USER: user, NATS_PASSWORD: pass } = settings;
  const configured = [
    creds === undefined ? undefined : { creds },
    credsFile === undefined ? undefined : { credsFile },
    token === undefined ? undefined : { token },
    user === undefined ? undefined : { user, pass: pass ?? '' },
  ].filter(credentials => credentials !== undefined);
  if (configured.length > 1) throw new ConfigError(['set at most one of NATS_CREDS, NATS_CREDS_FILE, NATS_TOKEN and NATS_USER']);
  return configured[0];
}

function tlsOf(settings: LogSettings): NatsTls | undefined {
  const { NATS_TLS_CA_FILE: ca, NATS_TLS_CERT_FILE: cert, NATS_TLS_KEY_FILE: key } = settings;
  if ((cert === undefined) !== (key === undefined))
    throw new ConfigError(['set NATS_TLS_CERT_FILE and NATS_TLS_KEY_FILE together, or neither']);
  return ca === undefined && cert === undefined ? undefined : { ca, cert, key };
}

const LEVELS: Partial<Record<LogEvent['type'], 'debug' | 'info'>> = {
  reread: 'debug',
  republished: 'debug',
  reconnected: 'info',
  'leader-moved': 'info',
  'layout-added': 'info',
};

function report(logger: Logger, event: LogEvent): void {
  if (event.type === 'denied' || event.type === 'rejected') {
    logger.error(`log: ${event.message}`);
    return;
  }
  if (event.type === 'streams-lost') {
    logger.error({ stream: event.streams.join(', ') }, LINE.streamsLost);
    return;
  }
  if (event.type === 'creation-refused') {
    logger.error({ reason: event.message }, 'missing streams of the log cannot be created again');
    return;
  }
  const reason =
    event.type === 'layout-refused'
      ? event.message
      : 'why' in event
        ? event.why
        : 'where' in event
          ? event.where
          : 'what' in event
            ? event.what
            : undefined;
  const fields = {
    ...(reason !== undefined && { reason }),
    ...('server' in event && { server: event.server }),
    ...('stream' in event && { stream: event.stream }),
    ...('begins' in event && {
      shards: event.shards,
      stream_groups: event.groups,
      begins: new Date(event.begins).toISOString(),
    }),
    ...('to' in event && { from: event.from, to: event.to }),
    ...('role' in event && { role: event.role }),
    ...('items' in event && { items: event.items }),
    ...('keptMs' in event && { kept_ms: event.keptMs }),
    ...('count' in event && { count: event.count, subject: event.name }),
  };
  logger[LEVELS[event.type] ?? 'warn'](fields, `log: ${snakeWord(event.type)}`);
}
