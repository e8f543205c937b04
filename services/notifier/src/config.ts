import { defineServiceConfig } from '@hopline/lifecycle';
import { HEARTBEAT_INTERVAL_MS, LEASE_MS } from '@hopline/log/shard-leases';
import { LOG_SETTINGS } from '@hopline/log-jetstream';
import { WEBHOOK_SETTINGS } from '@hopline/webhook-guard';

/** Settings of the notifier. */
export const notifierConfig = defineServiceConfig({
  ...LOG_SETTINGS,
  ...WEBHOOK_SETTINGS,
  HOPLINE_WEBHOOK_CA_FILE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: "Authorities (PEM) that webhooks' certificates may be of, beside those that Node trusts (NODE_EXTRA_CA_CERTS among them, which is read only at start); read again when it changes.",
  },
  HOPLINE_WEBHOOK_TIMEOUT_MS: {
    type: 'integer',
    default: 15_000,
    min: 100,
    max: 120_000,
    unit: 'ms',
    doc: 'One attempt at a notification, from connecting to the end of the answer.',
  },
  HOPLINE_WEBHOOK_ATTEMPTS_MAX: {
    type: 'integer',
    default: 30,
    min: 1,
    max: 1_000,
    doc: 'Attempts at one notification before its webhook is given up; 5 at most where it refuses (4xx, a redirect, a forbidden address), one where it says 410.',
  },
  HOPLINE_WEBHOOK_RETRY_MS_BASE: {
    type: 'integer',
    default: 1_000,
    min: 1,
    max: 600_000,
    unit: 'ms',
    doc: 'Upper edge of the random wait after a first failure; it doubles with each one more.',
  },
  HOPLINE_WEBHOOK_RETRY_MS_MAX: {
    type: 'integer',
    default: 300_000,
    min: 1,
    max: 3_600_000,
    unit: 'ms',
    doc: 'Upper edge of every wait. A webhook that sends Retry-After is waited for up to an hour.',
  },
  HOPLINE_WEBHOOK_ABANDON_AFTER_MS: {
    type: 'integer',
    default: 86_400_000,
    min: 1_000,
    max: 30 * 86_400_000,
    unit: 'ms',
    doc: 'A webhook that has taken nothing for this long is given up, however few attempts were made.',
  },
  HOPLINE_WEBHOOK_WORKERS_MAX: {
    type: 'integer',
    default: 2_000,
    min: 1,
    max: 100_000,
    doc: 'Webhooks followed at one time; others take turns with those that have nothing to tell.',
  },
  HOPLINE_WEBHOOK_REQUESTS_MAX: {
    type: 'integer',
    default: 256,
    min: 1,
    max: 10_000,
    doc: 'Notifications on their way at one time.',
  },
  HOPLINE_WEBHOOK_HOST_REQUESTS_MAX: {
    type: 'integer',
    default: 8,
    min: 1,
    max: 1_000,
    doc: 'Notifications on their way to one host and port: what a slow one can occupy.',
  },
  HOPLINE_LEASE_MS: {
    type: 'integer',
    default: LEASE_MS,
    min: 500,
    max: 60_000,
    unit: 'ms',
    doc: 'A notifier that was silent for this long loses its shards to the others.',
  },
  HOPLINE_LEASE_HEARTBEAT_MS: {
    type: 'integer',
    default: HEARTBEAT_INTERVAL_MS,
    min: 50,
    max: 10_000,
    unit: 'ms',
    doc: 'A notifier says that it lives this often.',
  },
});
