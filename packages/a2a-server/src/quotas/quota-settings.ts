import { LIMITS, type Limits } from '../limits.ts';

const GIB = 1024 ** 3;
const PERCENT = 100;

/** Settings of every service that serves A2A: what one caller may use. */
export const QUOTA_SETTINGS = {
  HOPLINE_OWNER_STREAMS_MAX: {
    type: 'integer',
    optional: true,
    min: 1,
    max: 100_000,
    unit: 'streams',
    doc: 'Streams and waiting sends of one caller in this process; further ones get 429. A caller or tenant never has more than four fifths of HOPLINE_STREAMS_MAX. Default: two fifths of it; without authentication all.',
  },
  HOPLINE_OWNER_MESSAGES_PER_SECOND: {
    type: 'integer',
    default: LIMITS.ownerMessagesPerSecond,
    min: 1,
    max: 1_000_000,
    unit: 'messages/s',
    doc: 'Messages of one caller to this process, on average; further ones get 429. Each may begin a task or a turn.',
  },
  HOPLINE_OWNER_MESSAGES_BURST: {
    type: 'integer',
    default: LIMITS.ownerMessagesBurst,
    min: 1,
    max: 1_000_000,
    unit: 'messages',
    doc: 'Messages of one caller to this process at once, after a pause.',
  },
  HOPLINE_OWNER_REQUEST_BYTES_PER_SECOND: {
    type: 'integer',
    default: LIMITS.ownerRequestBytesPerSecond,
    min: 1_024,
    max: GIB,
    unit: 'bytes/s',
    doc: 'Bytes of requests of one caller to this process, on average; further requests get 429.',
  },
  HOPLINE_OWNER_REQUEST_BYTES_BURST: {
    type: 'integer',
    default: LIMITS.ownerRequestBytesBurst,
    min: 1_024,
    max: 64 * GIB,
    unit: 'bytes',
    doc: 'Bytes of requests of one caller to this process at once, after a pause; at least one request of the largest size.',
  },
  HOPLINE_OWNER_SENT_BYTES_PER_SECOND: {
    type: 'integer',
    default: LIMITS.ownerSentBytesPerSecond,
    min: 1_024,
    max: GIB,
    unit: 'bytes/s',
    doc: 'Bytes that this process sends to one caller, on average. Beyond it event streams and exports are slowed down, and other requests except cancels get 429. Unlimited without authentication.',
  },
  HOPLINE_OWNER_SENT_BYTES_BURST: {
    type: 'integer',
    default: LIMITS.ownerSentBytesBurst,
    min: 1_024,
    max: 64 * GIB,
    unit: 'bytes',
    doc: 'Bytes that this process sends to one caller at once, after a pause.',
  },
  HOPLINE_OWNER_OPEN_TASKS_MAX: {
    type: 'integer',
    default: LIMITS.ownerOpenTasksMax,
    min: 1,
    max: 10_000_000,
    unit: 'tasks',
    doc: 'Unfinished tasks of one caller in the whole cluster; a message that starts another gets 429.',
  },
  HOPLINE_OWNER_WEBHOOKS_MAX: {
    type: 'integer',
    default: LIMITS.ownerPushConfigsMax,
    min: 1,
    max: 10_000_000,
    unit: 'webhooks',
    doc: 'Stored webhooks of one caller in the whole cluster, including those of ended tasks until retention removes them; further ones get 429.',
  },
  HOPLINE_OWNER_WEBHOOK_BYTES_MAX: {
    type: 'integer',
    default: LIMITS.ownerPushConfigBytesMax,
    min: 16_384,
    max: 64 * GIB,
    unit: 'bytes',
    doc: 'Bytes of the stored webhooks of one caller in the whole cluster; further ones get 429. All tenants share HOPLINE_BUCKET_BYTES_MAX.',
  },
  HOPLINE_TENANT_LIMIT_FACTOR: {
    type: 'integer',
    default: LIMITS.tenantLimitFactor,
    min: 1,
    max: 1_000,
    doc: 'Factor by which all callers of a tenant together may exceed the limits of one caller (the settings HOPLINE_OWNER_…).',
  },
  HOPLINE_TENANT_STORED_PERCENT: {
    type: 'integer',
    default: PERCENT * LIMITS.tenantStoredShare,
    min: 1,
    max: PERCENT,
    unit: 'percent',
    doc: 'Share of the bytes of `A2A_LOG` that the tasks of one tenant (or of one caller without a tenant) may take, ended ones included until retention removes them; a message that starts another gets 429. Tasks in progress continue. 100: no limit.',
  },
} as const;

type QuotaValues = {
  readonly [name in keyof typeof QUOTA_SETTINGS]: name extends 'HOPLINE_OWNER_STREAMS_MAX' ? number | undefined : number;
};

/** The limits that these settings describe. */
export function quotaLimits(settings: QuotaValues): Partial<Limits> {
  return {
    ownerStreamsMax: settings.HOPLINE_OWNER_STREAMS_MAX,
    ownerMessagesPerSecond: settings.HOPLINE_OWNER_MESSAGES_PER_SECOND,
    ownerMessagesBurst: settings.HOPLINE_OWNER_MESSAGES_BURST,
    ownerRequestBytesPerSecond: settings.HOPLINE_OWNER_REQUEST_BYTES_PER_SECOND,
    ownerRequestBytesBurst: settings.HOPLINE_OWNER_REQUEST_BYTES_BURST,
    ownerSentBytesPerSecond: settings.HOPLINE_OWNER_SENT_BYTES_PER_SECOND,
    ownerSentBytesBurst: settings.HOPLINE_OWNER_SENT_BYTES_BURST,
    ownerOpenTasksMax: settings.HOPLINE_OWNER_OPEN_TASKS_MAX,
    ownerPushConfigsMax: settings.HOPLINE_OWNER_WEBHOOKS_MAX,
    ownerPushConfigBytesMax: settings.HOPLINE_OWNER_WEBHOOK_BYTES_MAX,
    tenantLimitFactor: settings.HOPLINE_TENANT_LIMIT_FACTOR,
    tenantStoredShare: settings.HOPLINE_TENANT_STORED_PERCENT / PERCENT,
  };
}
