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
import type { HopMetrics, Logger } from '@hopline/telemetry';
import { type BackedUpStream, backUp, restore } from './backup.ts';
import { requireServer } from './capabilities.ts';
import { type Connection, openConnection } from './connection.ts';
import { checkServer, openJetStreamLog } from './jetstream-log.ts';
import { addLayout, readLayouts } from './layouts.ts';
import { LogLines } from './log-lines.ts';
import { LogMetrics } from './log-metrics.ts';
import { LogNames, PREFIX_FORM } from './names.ts';
import {
  ACK_WAIT_MS,
  type Credentials,
  type JetStreamLogOptions,
  type LayoutSize,
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
    doc: 'NATS credentials file, read at each connection; while it cannot be read, the previous credentials are used. Set at most one of NATS_CREDS_FILE, NATS_CREDS, NATS_TOKEN and NATS_USER.',
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

/** `user`: the NATS user as which the service connects. The other members are as in JetStreamLogOptions. */
type OpenOptions = { user: LogUser; logger: Logger; metrics?: HopMetrics } & Pick<
  JetStreamLogOptions,
  | 'name'
  | 'watchesRetention'
  | 'compactsRecords'
  | 'removesUnknown'
  | 'placesLeaders'
  | 'addsLayouts'
  | 'restoresLost'
  | 'openTimeoutMs'
>;

/**
 * Opens the log of a service; logs its connection events and counts shortages of room. Rejects with ConfigError if a file is missing or if
 * settings contradict each other, the server or its streams, and with a LogUnavailable of one sentence if NATS cannot be used. When NATS
 * has rejected the credentials for HOPLINE_NATS_REJECTED_MS, it throws an uncaught error, which ends the process.
 */
export async function openFromSettings(settings: LogSettings, openOptions: OpenOptions): Promise<Log> {
  const { logger, metrics, ...rest } = openOptions;
  const { watchesRetention = false, removesUnknown } = rest;
  const shown = metrics && new LogMetrics(metrics, { watchesRetention, removesUnknown: removesUnknown !== undefined });
  shown?.startAtZero(new LogNames(settings.HOPLINE_PREFIX, settings.HOPLINE_STREAM_GROUPS));
  const lines = new LogLines(logger);
  const options: JetStreamLogOptions = {
    ...logOptionsOf(settings),
    checksLogin: rest.user !== 'operator',
    ...rest,
    onFirstEntry: (...first) => shown?.onFirstEntry(...first),
    onNames: names => shown?.startAtZero(names),
    onEvent: event => {
      shown?.onEvent(event);
      lines.onEvent(event);
      if (event.type === 'rejected')
        setImmediate(() => {
          throw new LogUnavailable(event.message);
        });
    },
  };
  const log = await openJetStreamLog(options).catch(asConfigError);
  if (shown !== undefined) shown.isConnected = true;
  return log;
}

function logOptionsOf(settings: LogSettings): Omit<JetStreamLogOptions, 'name'> {
  return {
    ...connectionOf(settings),
    rejectedMsMax: settings.HOPLINE_NATS_REJECTED_MS,
    prefix: settings.HOPLINE_PREFIX,
    ...(settings.HOPLINE_SHARDS !== undefined && { shards: settings.HOPLINE_SHARDS }),
    ...(settings.HOPLINE_STREAM_GROUPS !== undefined && { groups: settings.HOPLINE_STREAM_GROUPS }),
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
  };
}

/** How long `checkNats` waits for a server that is still starting. */
const CHECK_MS_MAX = 2_000;

/** Connects once and disconnects. Rejects with one sentence if services could not open the log with these settings. */
export async function checkNats(settings: LogSettings): Promise<void> {
  const connection = connectionOf(settings);
  const options = { ...connection, replicas: settings.HOPLINE_REPLICAS, name: 'hopline-check', timeoutMs: CHECK_MS_MAX };
  await checkServer(options).catch(asConfigError);
}

type AddLayoutOptions = { size: LayoutSize | undefined; onLayout: (layout: Layout) => void };

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

type BackupOptions = { folder: string; onStream: (stream: BackedUpStream) => void };

/** Writes a backup of the log into a folder, while the cluster runs. Needs the user `admin`. Rejects like openFromSettings. */
export async function backUpFromSettings(settings: LogSettings, { folder, onStream }: BackupOptions): Promise<void> {
  await connected(settings, connection => backUp(connection, folder, onStream));
}

/** Restores a backup into a server that has none of its streams. Needs the user `admin`. Rejects like openFromSettings. */
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
    } catch (error) {
      throw connection.toDenied(error) ?? error;
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

/** Faults that a restart cannot repair are reported as faults of the settings. */
function asConfigError(error: unknown): never {
  if (error instanceof LogMismatch) throw new ConfigError([error.message], { cause: error.cause });
  if (error instanceof LogUnavailable && error.message.includes('unable to parse credentials'))
    throw new ConfigError(['NATS_CREDS_FILE or NATS_CREDS does not contain NATS credentials']);
  throw error;
}

/** Files are read at each connection, but a file that is missing at startup is a fault of the settings. */
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
