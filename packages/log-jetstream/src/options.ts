import type { Layout, Role } from '@hopline/events';
import type { FollowOptions, RereadReason } from '@hopline/log';
import type { NatsConnection } from '@nats-io/nats-core';
import type { NodeConnectionOptions } from '@nats-io/transport-node';
import type { LogNames } from './names.ts';
import type { LogUser } from './users.ts';

export type JetStreamLogOptions = {
  /**
   * NATS URLs, separated by commas: `nats://host:4222`, `tls://…` (one of them requires TLS for all). A user and password in the
   * first URL are used.
   */
  servers: string;
  /** Connection name that the server shows: service and instance. */
  name: string;
  /** Prefix of the names of streams, subjects and buckets, so that several clusters share an account: 1 to 32 of A-Z, a-z, 0-9, _ and -. */
  prefix?: string | undefined;
  /** Expected number of shards of the first layout, fixed when the streams are created. Default: that of the streams, SHARDS_DEFAULT for new ones. */
  shards?: number;
  /** Expected number of stream groups of the first layout, fixed when the streams are created. Default: that of the streams, GROUPS_DEFAULT for new ones. */
  groups?: number;
  /**
   * Stores records of facts without the members that they repeat. Versions from before 2026-11-24 cannot read such records. Needed only
   * once, for streams that such a version created: the stream remembers it, and new streams have it from the beginning. Requires
   * nats-server 2.10. Default false.
   */
  compactsRecords?: boolean;
  /**
   * Layouts after the first one, which the process adds in order while `isAdder` returns true. Absent: it only picks up those that others
   * add.
   */
  addsLayouts?: { wanted: readonly LayoutSize[]; isAdder: () => boolean };
  /** Default LAYOUT_TIMES. */
  layoutTimes?: LayoutTimes;
  /** Replicas of each stream, 1, 3 or 5. Default 1. More than one requires nats-server 2.11. */
  replicas?: number;
  /**
   * The service that uses this connection. It determines the subjects of answers and inputs, and whether missing streams are created.
   * Absent for tools and tests: they use ordinary NATS inboxes, append inputs of any writer, and create missing streams.
   */
  user?: LogUser;
  credentials?: Credentials;
  /**
   * Time for which servers may reject the credentials of an open log before the event `rejected`. Absent: the log tries again without a
   * limit. So it does with a `credsFile`, which is read at each connection.
   */
  rejectedMsMax?: number;
  /** Requires TLS, even without files. Absent: TLS is used if the server requires it or a URL begins with `tls:`. */
  tls?: NatsTls;
  /** Opens the connection to NATS. Default: by TCP or TLS. */
  connect?: Connect;
  /** Retention in milliseconds. Applied when the streams are created. */
  maxAges?: Partial<MaxAges>;
  /** Retention in bytes. Applied when the streams are created. The server reserves the sum. */
  maxBytes?: Partial<MaxBytes>;
  /**
   * Time without an answer after which the items of a worker are delivered again. The items of a worker without a connection are delivered again at
   * once. Default ACK_WAIT_MS.
   */
  ackWaitMs?: number;
  /** Like `ackWaitMs`, for items that no worker's entry names yet, if that is shorter. Default UNCLAIMED_WAIT_MS. */
  unclaimedWaitMs?: number;
  /** Time before the items of a worker are delivered again if no other worker of its version is left to queue them. Default CLAIM_MS. */
  claimMs?: number;
  /** Maximum number of items of one queue of a role that run at the same time in all its workers. Default QUEUE_TURNS_MAX_DEFAULT. */
  queueTurnsMax?: number;
  /** Attempts at an item of work. Default ATTEMPTS_MAX_DEFAULT. */
  attemptsMax?: number;
  /** Requeues of an item that do not count as attempts. Default REQUEUES_MAX_DEFAULT. */
  requeuesMax?: number;
  /** Items of one role that may wait or run before servers refuse new messages for it. Default ROLE_ITEMS_MAX_DEFAULT. */
  roleItemsMax?: number;
  /**
   * Items of one tenant and role that may wait or run before servers refuse the tenant's new messages for that role. Default
   * TENANT_ITEMS_MAX_DEFAULT.
   */
  tenantItemsMax?: number;
  /** Share of a worker's slots that the items of one tenant may take. Default TENANT_SLOTS_SHARE_DEFAULT. */
  tenantSlotsShare?: number;
  /** Time before a publish without an ack is sent again. Default ACK_TIMEOUT_MS. */
  ackTimeoutMs?: number;
  /** Time limit for the first connection, and for the creation of each stream. Default OPEN_TIMEOUT_MS. */
  openTimeoutMs?: number;
  /** Checks every RETENTION_CHECK_MS whether streams remove entries by bytes or are nearly full. Default false. */
  watchesRetention?: boolean;
  /**
   * Called at each of these checks for each stream with entries. `firstAt`: when the oldest one was stored, in epoch milliseconds.
   * `ageMsMax`: the age at which the stream removes entries; undefined if it has no limit.
   */
  onFirstEntry?: (stream: string, firstAt: number, ageMsMax: number | undefined) => void;
  /**
   * Removes consumers and work that are not Hopline's, every `checkMs` (default UNKNOWN_CHECK_MS). `keptConsumers`: names of consumers
   * to keep, or prefixes that end with `*`. Absent: nothing is removed.
   */
  removesUnknown?: { keptConsumers: readonly string[]; checkMs?: number };
  /** Creates streams and buckets again if they are lost while the log is open. Absent: they are created only when a log is opened. */
  restoresLost?: LostOptions;
  /** Maximum number of tasks that this relay follows for all processes of one agent. Default AGENT_TASKS_MAX. */
  agentTasksMax?: number;
  /** Reports a login that permits more than `user` needs. Default false. */
  checksLogin?: boolean;
  /** Spreads the leaders of the streams over the nodes of NATS. Absent: they stay where the server elected them. */
  placesLeaders?: PlacementOptions;
  follow?: Omit<FollowOptions, 'onReread' | 'onCheckFailed'>;
  /** Called when the streams are known, before they are read. */
  onNames?: (names: LogNames) => void;
  /** Events of the connection and its readers, for logs and metrics. They contain no payload. */
  onEvent?: (event: LogEvent) => void;
};

/** Opens a connection to NATS. */
export type Connect = (options: NodeConnectionOptions) => Promise<NatsConnection>;

/**
 * `creds`: the content of a credentials file. `credsFile`: its path, read at each connection; while it cannot be read, the previous
 * credentials are used.
 */
export type Credentials = { user: string; pass: string } | { token: string } | { creds: string } | { credsFile: string };

/** Paths of PEM files, read at each connection. Without `ca`, the certificate authorities that Node trusts. */
export type NatsTls = { ca?: string | undefined; cert?: string | undefined; key?: string | undefined };

export type PlacementOptions = {
  /** Whether this process is the one that moves leaders now. */
  isPlacer: () => boolean;
  /** Time between two checks, and so between two moves. Default LEADERS_CHECK_MS. */
  checkMs?: number;
};

/** The numbers of a layout that is to be added. */
export type LayoutSize = Pick<Layout, 'shards' | 'groups'>;

/** Time between two reads of the layouts, and between storing a layout and its beginning. Tests use shorter times. */
export type LayoutTimes = { pollMs: number; aheadMs: number };

/** Time between two checks, and the number of consecutive checks that must miss a stream. Defaults LOST_CHECK_MS and LOST_CHECKS_MIN. */
export type LostOptions = { checkMs?: number; checksMin?: number };

export type MaxAges = {
  inputsMs: number;
  /** Also used for work, message ids and the task index. */
  factsMs: number;
};

export type MaxBytes = { inputs: number; facts: number; work: number; keyValue: number };

export type LogEvent =
  | { type: 'disconnected' | 'reconnected' | 'lame-duck'; server: string }
  | { type: 'server-error'; message: string }
  /** The servers have rejected the credentials for `rejectedMsMax`. The log stays open and keeps trying. */
  | { type: 'rejected'; message: string }
  /** The NATS user lacks a permission. */
  | { type: 'denied'; message: string }
  /** The login permits more than the service needs. */
  | { type: 'login-wide'; why: string }
  /** The account of NATS of a relay or an agent, at its start. */
  | { type: 'account'; account: string; why: 'the account of the log' | 'an account of this agent' }
  /** A payload that is not a record was skipped. */
  | { type: 'undecodable'; where: 'inputs' | 'facts' | 'work' | 'key-value' }
  /** A publish was sent again. */
  | { type: 'republished'; why: string }
  /** A follower reads missed records from the log. */
  | { type: 'reread'; why: RereadReason }
  /** A reader lost its consumer and continues after its last record. */
  | { type: 'reader-restarted'; what: string }
  /** A write was refused: the stream or bucket has no room. `nearly-full`: writes will soon be refused. */
  | { type: 'full' | 'nearly-full'; stream: string }
  /** This process has asked the leader of a stream to hand over to another node, because leaders were spread unevenly. */
  | { type: 'leader-moved'; stream: string; from: string; to: string }
  /** A layout was added to the log. New tasks are in it from `begins` on (epoch milliseconds). */
  | { type: 'layout-added'; shards: number; groups: number; begins: number }
  /** HOPLINE_LAYOUTS names a layout that cannot be added yet. */
  | { type: 'layout-refused'; message: string }
  /** Streams and buckets were missing while this relay ran, and it has created them again: their content is lost. */
  | { type: 'streams-lost'; streams: string[] }
  /** Missing streams cannot be created again. */
  | { type: 'creation-refused'; message: string }
  /** An existing stream lacks a limit, and the server or its permissions do not allow adding it. */
  | { type: 'bounds-refused'; stream: string }
  /** Consumers that are not Hopline's were removed from a stream. `name`: one of them. */
  | { type: 'unknown-consumers'; stream: string; count: number; name: string }
  /** Messages for roles without workers were removed from the work stream. `name`: one of these roles. */
  | { type: 'unknown-work'; stream: string; count: number; name: string }
  /** The stream or bucket removes its oldest entries after `keptMs` because of its limit in bytes, before they reach their age limit. */
  | { type: 'removes-by-bytes'; stream: string; keptMs: number }
  /**
   * `inputs-rebuilt`: the stream of inputs was missing and was created again. `inputs-behind`: the stream was restored or truncated, so it
   * ends before a checkpoint or has other records than those that were read; it is read again from its beginning.
   */
  | { type: 'inputs-rebuilt' | 'inputs-behind'; stream: string }
  /** An item exhausted its deliveries and stays in the work stream until it expires. */
  | { type: 'dead-letter'; role: Role }
  /** A periodic check has failed, and not because of an outage: this is a defect, or an unreadable NATS_CREDS_FILE. `what` was checked. */
  | { type: 'check-failed'; what: string; error: unknown }
  /** A worker of the role is dead, and this one has queued its items again. */
  | { type: 'worker-dead'; role: Role; items: number };

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MIB = 1024 * 1024;

/** About 30 MB in a relay. */
export const AGENT_TASKS_MAX = 20_000;
export const MAX_AGES_DEFAULT: MaxAges = { inputsMs: 6 * HOUR_MS, factsMs: 7 * DAY_MS };
/** Minimum size of the streams of one group. There must be room for several of the largest records (1 MiB by default). */
export const GROUP_BYTES_MIN = 16 * MIB;
export const MAX_BYTES_DEFAULT: MaxBytes = { inputs: 1024 * MIB, facts: 4096 * MIB, work: 256 * MIB, keyValue: 128 * MIB };
/**
 * A work item that is sent again within this time is stored only once. Longer than a takeover, an election and a publish timeout together.
 */
export const DUPLICATE_WINDOW_MS = 10 * MINUTE_MS;
/**
 * An input that is sent again within this time is stored only once. nats-server keeps each id in memory (210 B), so the time is short, but
 * longer than an election and a publish timeout. A record that is nevertheless stored twice changes nothing, because its ordinals are
 * folded once.
 */
export const INPUTS_DUPLICATE_WINDOW_MS = 2 * MINUTE_MS;
/**
 * Like INPUTS_DUPLICATE_WINDOW_MS, for facts, whose expected sequence rejects a repeated record at any time. nats-server requires at least
 * 100 ms.
 */
export const FACTS_DUPLICATE_WINDOW_MS = 1_000;
/**
 * Retention of leases and of heartbeats of relays and notifiers, which are written every hour or more often. It does not depend on the
 * retention of tasks, because a shard that loses the checkpoint in its lease must read all stored inputs again.
 */
export const LEASES_AGE_MS = 7 * DAY_MS;

/*
 *
 * Consumers of each stream. By default nats-server 2.15 allows 1,000, which one client could use up. The numbers are for 1,000 agents, each with one
 * process, and 50 processes of ingress: far more than a NATS cluster can serve today.
 */

/** At most nine consumers for each role (one for work without an owner, eight for tenants): 1,000 agents and the supervisors take 9,009. */
export const WORK_CONSUMERS_MAX = 10_000;
/**
 * Each process reads 16 pages of history at once, and has one consumer per 256 quiet tasks that it follows: 17 consumers for an agent, 56 for an
 * ingress with 10,000 streams. Together 19,800.
 */
export const FACTS_CONSUMERS_MAX = 20_000;
/**
 * One consumer for each of up to 256 shards, and 16 for the audits of each ingress: 1,056. Doubled, because the consumers of two owners
 * overlap in a takeover.
 */
export const INPUTS_CONSUMERS_MAX = 2_500;
/** Two consumers for each process that watches the bucket, because a consumer and its replacement overlap: 2,100. */
export const BUCKET_CONSUMERS_MAX = 2_500;
/** Items of one role and task: a turn has at most 64 calls, and each of them may be queued once again. */
export const WORK_ITEMS_PER_SUBJECT_MAX = 128;

export const ACK_WAIT_MS = 5_000;
/**
 * An item whose worker dies in its first 400 to 650 ms waits this long, so that text flows again within 3 s. Longer than the 1.67 s between
 * two of the keep-alives by which versions before 2026-11-24 keep their items.
 */
export const UNCLAIMED_WAIT_MS = 2_000;
/**
 * How long items stay claimed after a worker and all its siblings have died. Each claim is renewed twice in this time, so a shorter time
 * would cost more messages.
 */
export const CLAIM_MS = 2 * 60_000;
export const QUEUE_TURNS_MAX_DEFAULT = 4_096;
export const OPEN_TIMEOUT_MS = 30_000;
