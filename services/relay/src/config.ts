import { type Config, ConfigError, defineServiceConfig, type Settings } from '@hopline/lifecycle';
import { COALESCE_SETTINGS } from '@hopline/log';
import { leaseSettings } from '@hopline/log/shard-leases';
import { LAYOUTS_FORM, LOG_SETTINGS } from '@hopline/log-jetstream';
import { TASK_BYTES_MAX } from './task-appender.ts';

/**
 * input-required ends the turn and holds no resources, so it has no default limit. auth-required keeps the agent's call open, with a slot,
 * a connection and a work item, so without a limit an agent would be blocked by as many forgotten logins as it has slots. An hour exceeds
 * the lifetime of a login (device codes: 15 to 30 minutes in practice; authorization codes: 10, RFC 6749 4.1.2).
 */
const AUTH_REQUIRED_TIMEOUT_MS = 60 * 60_000;

const declared = defineServiceConfig({
  ...LOG_SETTINGS,
  ...COALESCE_SETTINGS,
  HOPLINE_TASK_STORED_BYTES_MAX: {
    type: 'integer',
    default: TASK_BYTES_MAX,
    min: 1024 * 1024,
    max: 1024 ** 4,
    unit: 'bytes',
    doc: 'Bytes of records that one task may have in `A2A_LOG`, so that no single agent can fill it. A task that has reached the limit fails at its next event.',
  },
  HOPLINE_LAYOUTS: {
    type: 'string',
    optional: true,
    form: { pattern: LAYOUTS_FORM, words: 'layouts of the form <shards>/<stream groups>, separated by commas' },
    doc: 'Layouts of the log after its first one, for example `64/4`. A relay adds those that the log lacks; new tasks are in the newest one 10 minutes later, others stay where they are. Only add new ones at the end, and only when every service has a version that knows this setting.',
  },
  HOPLINE_COMPACT_RECORDS: {
    type: 'boolean',
    default: false,
    doc: 'Store records of facts without the values that they repeat, even in streams that a version from before 2026-11-24 created. Set it when all services are newer: such a version cannot read these records. New streams always have them.',
  },
  ...leaseSettings(
    'A relay without a heartbeat for this long loses its shards; one whose connection to NATS is gone, after two heartbeats. Bounds the pause in a stream after the death of its relay.',
  ),
  HOPLINE_INPUT_TIMEOUT_MS: {
    type: 'integer',
    optional: true,
    min: 100,
    max: 365 * 24 * 60 * 60_000,
    unit: 'ms',
    doc: 'A task in input-required fails after this. Without it the task waits until retention removes it.',
  },
  HOPLINE_AUTH_REQUIRED_TIMEOUT_MS: {
    type: 'integer',
    default: AUTH_REQUIRED_TIMEOUT_MS,
    min: 100,
    max: 365 * 24 * 60 * 60_000,
    unit: 'ms',
    doc: 'A task in auth-required fails after this. Its agent holds a slot until then.',
  },
  HOPLINE_KEPT_CONSUMERS: {
    type: 'string',
    optional: true,
    form: {
      pattern: /^[^\s,.*>]+\*?(,[^\s,.*>]+\*?)*$/,
      words: 'names of consumers joined by commas, each with or without a * at its end',
    },
    doc: 'Your own consumers on the streams of Hopline, e.g. `warehouse,audit-*`. Relays remove all others that outlive their reader.',
  },
  HOPLINE_COPY_FORWARD_AFTER_MS: {
    type: 'integer',
    optional: true,
    min: 100,
    max: 3_650 * 24 * 60 * 60_000,
    unit: 'ms',
    doc: 'The facts of an open task are copied forward at this age, so that retention never removes them; a task in progress without an event between two copies fails. Must be longer than agents are silent, and well below HOPLINE_TASKS_AGE_MS; default: half of it.',
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
        'HOPLINE_COPY_FORWARD_AFTER_MS must be less than HOPLINE_TASKS_AGE_MS: after that, no facts are left to copy forward',
      ]);
    return settings;
  },
};

/** Resolves the setting. Its default leaves half of the retention time for an outage of all relays. */
export function copyForwardAfterMs(
  settings: Pick<Settings<RelaySettings>, 'HOPLINE_COPY_FORWARD_AFTER_MS' | 'HOPLINE_TASKS_AGE_MS'>,
): number {
  return settings.HOPLINE_COPY_FORWARD_AFTER_MS ?? settings.HOPLINE_TASKS_AGE_MS / 2;
}

/** Names of consumers, or prefixes of names that end with `*`. */
export function keptConsumers({
  HOPLINE_KEPT_CONSUMERS = '',
}: Pick<Settings<RelaySettings>, 'HOPLINE_KEPT_CONSUMERS'>): string[] {
  return HOPLINE_KEPT_CONSUMERS.split(',').filter(name => name !== '');
}
