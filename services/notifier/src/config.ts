import { defineServiceConfig } from '@hopline/lifecycle';
import { leaseSettings } from '@hopline/log/shard-leases';
import { SECRETS_SETTINGS } from '@hopline/log/webhook-secrets';
import { LOG_SETTINGS } from '@hopline/log-jetstream';
import { WEBHOOK_SETTINGS } from '@hopline/webhook-guard';

/** Settings of the notifier. */
export const notifierConfig = defineServiceConfig({
  ...LOG_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...SECRETS_SETTINGS,
  HOPLINE_WEBHOOK_CA_FILE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: 'PEM file of certificate authorities for webhooks, in addition to those that Node trusts (including NODE_EXTRA_CA_CERTS, read only at start); reloaded when it changes.',
  },
  HOPLINE_WEBHOOK_TIMEOUT_MS: {
    type: 'integer',
    default: 15_000,
    min: 100,
    max: 120_000,
    unit: 'ms',
    doc: 'Time limit of one attempt, from the connection to the end of the response.',
  },
  HOPLINE_WEBHOOK_ATTEMPTS_MAX: {
    type: 'integer',
    default: 30,
    min: 1,
    max: 1_000,
    doc: 'Attempts at one notification before its webhook is abandoned; at most 5 when it refuses (4xx, a redirect, a forbidden address), one on 410.',
  },
  HOPLINE_WEBHOOK_RETRY_MS_BASE: {
    type: 'integer',
    default: 1_000,
    min: 1,
    max: 600_000,
    unit: 'ms',
    doc: 'Upper bound of the random wait after the first failure; it doubles with each further failure.',
  },
  HOPLINE_WEBHOOK_RETRY_MS_MAX: {
    type: 'integer',
    default: 300_000,
    min: 1,
    max: 3_600_000,
    unit: 'ms',
    doc: 'Upper bound of every wait. Retry-After is respected up to an hour.',
  },
  HOPLINE_WEBHOOK_ABANDON_AFTER_MS: {
    type: 'integer',
    default: 86_400_000,
    min: 1_000,
    max: 30 * 86_400_000,
    unit: 'ms',
    doc: 'A webhook that fails for this long is abandoned, whatever the number of attempts.',
  },
  HOPLINE_WEBHOOK_WORKERS_MAX: {
    type: 'integer',
    default: 2_000,
    min: 1,
    max: 100_000,
    doc: 'Delivery workers that run at one time. Others wait until a worker is idle.',
  },
  HOPLINE_WEBHOOK_INTERVAL_MS: {
    type: 'integer',
    default: 200,
    min: 0,
    max: 60_000,
    unit: 'ms',
    doc: 'Minimum time between two notifications of one configuration, so that a short request cannot cause a flood of them; pieces of text that wait in the meantime are sent as one.',
  },
  HOPLINE_WEBHOOK_BYTES_PER_SECOND: {
    type: 'integer',
    default: 1024 * 1024,
    min: 1_024,
    max: 1024 * 1024 * 1024,
    unit: 'bytes/s',
    doc: 'Bytes of notifications to one configuration, on average, failed attempts included; the bytes of one second may be sent at once. A larger notification is sent whole, and the next one waits: in A2A 0.3 each contains the whole task.',
  },
  HOPLINE_WEBHOOK_REQUESTS_MAX: {
    type: 'integer',
    default: 256,
    min: 1,
    max: 10_000,
    doc: 'Notifications in flight at one time.',
  },
  HOPLINE_WEBHOOK_HOST_REQUESTS_MAX: {
    type: 'integer',
    default: 8,
    min: 1,
    max: 1_000,
    doc: 'Notifications in flight to one host and port: the most that a slow host can occupy.',
  },
  ...leaseSettings('A notifier without a heartbeat for this long loses its shards.'),
});
