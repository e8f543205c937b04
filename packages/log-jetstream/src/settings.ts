import { SHARDS_DEFAULT, SHARDS_MAX } from '@hopline/events';
import type { Setting, Settings } from '@hopline/lifecycle';
import type { Log } from '@hopline/log';
import type { Logger } from '@hopline/telemetry';
import { openJetStreamLog } from './jetstream-log.ts';
import { ACK_WAIT_MS, type Credentials, type LogEvent, MAX_AGES_DEFAULT } from './options.ts';

const MINUTE_MS = 60_000;

/** Settings of the log, the same in every service. */
export const LOG_SETTINGS = {
  NATS_URL: {
    type: 'url',
    default: 'nats://127.0.0.1:4222',
    schemes: ['nats', 'tls'],
    list: true,
    doc: 'NATS servers, joined by commas. `tls://` demands TLS.',
  },
  NATS_CREDS: { type: 'string', optional: true, min: 1, max: 16_384, secret: true, doc: 'Content of a NATS credentials file.' },
  NATS_USER: { type: 'string', optional: true, min: 1, max: 256, doc: 'User name, with NATS_PASSWORD.' },
  NATS_PASSWORD: { type: 'string', optional: true, min: 1, max: 1_024, secret: true, doc: 'Password of NATS_USER.' },
  HOPLINE_SHARDS: {
    type: 'integer',
    default: SHARDS_DEFAULT,
    min: 1,
    max: SHARDS_MAX,
    doc: 'Shards of the log. Fixed when its streams are created; a service that expects another number refuses to start.',
  },
  HOPLINE_REPLICAS: {
    type: 'integer',
    default: 1,
    min: 1,
    max: 5,
    doc: 'Copies of each stream. More than one needs nats-server 2.11.',
  },
  HOPLINE_INPUTS_AGE_MS: {
    type: 'integer',
    default: MAX_AGES_DEFAULT.inputsMs,
    min: 10 * MINUTE_MS,
    max: 30 * 24 * 60 * MINUTE_MS,
    unit: 'ms',
    doc: 'How long inputs are kept: longer than the longest time without any relay. Read when the streams are created.',
  },
  HOPLINE_TASKS_AGE_MS: {
    type: 'integer',
    default: MAX_AGES_DEFAULT.factsMs,
    min: 10 * MINUTE_MS,
    max: 3_650 * 24 * 60 * MINUTE_MS,
    unit: 'ms',
    doc: 'How long tasks are kept: older events are gone, and a client is told of the gap. Read when the streams are created.',
  },
  HOPLINE_ACK_WAIT_MS: {
    type: 'integer',
    default: ACK_WAIT_MS,
    min: 500,
    max: 10 * MINUTE_MS,
    unit: 'ms',
    doc: 'How long the work of a dead supervisor or agent waits for the next one.',
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type LogSettings = Settings<typeof LOG_SETTINGS>;

/** Opens the log as a service does, and writes what happens to the connection into its log. */
export function openFromSettings(settings: LogSettings, { name, logger }: { name: string; logger: Logger }): Promise<Log> {
  const credentials = credentialsOf(settings);
  return openJetStreamLog({
    servers: settings.NATS_URL,
    name,
    shards: settings.HOPLINE_SHARDS,
    replicas: settings.HOPLINE_REPLICAS,
    maxAges: { inputsMs: settings.HOPLINE_INPUTS_AGE_MS, factsMs: settings.HOPLINE_TASKS_AGE_MS },
    ackWaitMs: settings.HOPLINE_ACK_WAIT_MS,
    ...(credentials && { credentials }),
    onEvent: event => report(logger, event),
  });
}

function credentialsOf({ NATS_CREDS: creds, NATS_USER: user, NATS_PASSWORD: pass }: LogSettings): Credentials | undefined {
  if (creds !== undefined) return { creds };
  return user === undefined ? undefined : { user, pass: pass ?? '' };
}

function report(logger: Logger, event: LogEvent): void {
  const reason = 'why' in event ? event.why : 'where' in event ? event.where : 'what' in event ? event.what : undefined;
  const fields = { ...(reason !== undefined && { reason }), ...('server' in event && { server: event.server }) };
  const level =
    event.type === 'reread' || event.type === 'republished' ? 'debug' : event.type === 'reconnected' ? 'info' : 'warn';
  logger[level](fields, `log: ${event.type}`);
}
