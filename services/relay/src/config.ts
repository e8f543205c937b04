import { DEFAULT_SETTINGS, EVENT_COST_MS_MAX, HOLD_MS_MAX } from '@hopline/coalesce';
import { type Config, ConfigError, defineServiceConfig, type Settings } from '@hopline/lifecycle';
import { HEARTBEAT_INTERVAL_MS, LEASE_MS } from '@hopline/log/shard-leases';
import { LOG_SETTINGS } from '@hopline/log-jetstream';

/**
 * Who is asked for an answer keeps nobody busy: the turn is over. Who is asked for credentials does: the agent's call goes on, with a slot, a connection and a work item kept alive, and as many
 * forgotten logins as it has slots would stop it for all. An hour is more than the login behind it lasts (device codes: 15 to 30 minutes in the field; authorization codes: 10, RFC 6749 4.1.2).
 */
const AUTH_REQUIRED_TIMEOUT_MS = 60 * 60_000;

const declared = defineServiceConfig({
  ...LOG_SETTINGS,
  HOPLINE_EVENT_COST_MS: {
    type: 'number',
    default: DEFAULT_SETTINGS.eventCostMs,
    min: 0,
    max: EVENT_COST_MS_MAX,
    unit: 'token-ms',
    doc: 'What one client event is worth in delayed tokens: larger means fewer, larger chunks. 0 passes every token through.',
  },
  HOPLINE_HOLD_MS_MAX: {
    type: 'integer',
    default: DEFAULT_SETTINGS.holdMsMax,
    min: 1,
    max: HOLD_MS_MAX,
    unit: 'ms',
    doc: 'No token is held longer than this.',
  },
  HOPLINE_CHUNK_BYTES_MAX: {
    type: 'integer',
    default: DEFAULT_SETTINGS.chunkBytesMax,
    min: 64,
    max: 262_144,
    unit: 'bytes',
    doc: 'No chunk is longer than this.',
  },
  HOPLINE_LEASE_MS: {
    type: 'integer',
    default: LEASE_MS,
    min: 500,
    max: 60_000,
    unit: 'ms',
    doc: 'A relay that was silent for this long loses its shards: the bound on how long text stands still after its death.',
  },
  HOPLINE_LEASE_HEARTBEAT_MS: {
    type: 'integer',
    default: HEARTBEAT_INTERVAL_MS,
    min: 50,
    max: 10_000,
    unit: 'ms',
    doc: 'A relay says that it lives this often.',
  },
  HOPLINE_INPUT_TIMEOUT_MS: {
    type: 'integer',
    optional: true,
    min: 100,
    max: 365 * 24 * 60 * 60_000,
    unit: 'ms',
    doc: 'A task that waits for its client to answer fails after this. Without it a task waits for as long as tasks are kept.',
  },
  HOPLINE_AUTH_REQUIRED_TIMEOUT_MS: {
    type: 'integer',
    default: AUTH_REQUIRED_TIMEOUT_MS,
    min: 100,
    max: 365 * 24 * 60 * 60_000,
    unit: 'ms',
    doc: 'A task that waits for credentials (auth-required) fails after this: its agent waits with it, and takes a slot meanwhile.',
  },
  HOPLINE_COPY_FORWARD_AFTER_MS: {
    type: 'integer',
    optional: true,
    min: 100,
    max: 3_650 * 24 * 60 * 60_000,
    unit: 'ms',
    doc: 'The events of an open task are stored again when they are this old, so that it never outlives them: well below the age of the stream `A2A_LOG`. Without it: half of HOPLINE_TASKS_AGE_MS.',
  },
});

type RelaySettings = (typeof declared)['settings'];

/** Settings of the relay. */
export const relayConfig: Config<RelaySettings> = {
  ...declared,
  load: env => {
    const settings = declared.load(env);
    if (copyForwardAfterMs(settings) >= settings.HOPLINE_TASKS_AGE_MS)
      throw new ConfigError([
        'HOPLINE_COPY_FORWARD_AFTER_MS must be less than HOPLINE_TASKS_AGE_MS: later there is nothing to carry',
      ]);
    return settings;
  },
};

/** Half of the retention leaves a relay that was away for days the other half. */
export function copyForwardAfterMs(
  settings: Pick<Settings<RelaySettings>, 'HOPLINE_COPY_FORWARD_AFTER_MS' | 'HOPLINE_TASKS_AGE_MS'>,
): number {
  return settings.HOPLINE_COPY_FORWARD_AFTER_MS ?? settings.HOPLINE_TASKS_AGE_MS / 2;
}
