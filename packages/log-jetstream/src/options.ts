import type { Role } from '@hopline/events';
import type { FollowOptions, RereadReason } from '@hopline/log';

export type JetStreamLogOptions = {
  /** NATS URLs, separated by commas: `nats://host:4222`, `tls://…` (one of them demands TLS of all). A user and password in the first URL are used. */
  servers: string;
  /** Name of the connection, shown by the server: service and instance. */
  name: string;
  /** Expected number of shards, fixed when the streams are created. Default SHARDS_DEFAULT. */
  shards?: number;
  /** Copies of each stream, 1 or 3 (5). Default 1. More than one needs a server of 2.11. */
  replicas?: number;
  credentials?: Credentials;
  /** TLS is demanded, also when it has no files. Absent: taken when the server demands it, or a URL begins with `tls:`. */
  tls?: NatsTls;
  /** How long things are kept, milliseconds. Read when the streams are created. */
  maxAges?: Partial<MaxAges>;
  /** How much is kept, bytes. Read when the streams are created; the server reserves the sum. */
  maxBytes?: Partial<MaxBytes>;
  /** How long the item of a dead worker waits, milliseconds. Default ACK_WAIT_MS. */
  ackWaitMs?: number;
  /** Attempts at an item of work. Default ATTEMPTS_MAX_DEFAULT. */
  attemptsMax?: number;
  /** Deliveries of an item that may be handed back in order without using up an attempt. Default HAND_BACKS_MAX_DEFAULT. */
  requeuesMax?: number;
  /** How long a publish waits for its ack before it is sent again, milliseconds. Default ACK_TIMEOUT_MS. */
  ackTimeoutMs?: number;
  /** How long the first connection and the creation of the streams may take, milliseconds. Default OPEN_TIMEOUT_MS. */
  openTimeoutMs?: number;
  follow?: Omit<FollowOptions, 'onReread'>;
  /** What happens to the connection and its readers, for logs and metrics. Never carries payload. */
  onEvent?: (event: LogEvent) => void;
};

/** `creds`: the content of a credentials file. `credsFile`: its path, read at each connection. */
export type Credentials = { user: string; pass: string } | { token: string } | { creds: string } | { credsFile: string };

/** Paths of PEM files, read at each connection. Without `ca`: the authorities that Node trusts. */
export type NatsTls = { ca?: string | undefined; cert?: string | undefined; key?: string | undefined };

export type MaxAges = {
  inputsMs: number;
  /** Also of work, message ids and the task index. */
  factsMs: number;
};

export type MaxBytes = { inputs: number; facts: number; work: number; keyValue: number };

export type LogEvent =
  | { type: 'disconnected' | 'reconnected' | 'lame-duck'; server: string }
  | { type: 'server-error'; message: string }
  /** A payload that is no record was skipped. */
  | { type: 'undecodable'; where: 'inputs' | 'facts' | 'work' | 'key-value' }
  /** A publish is sent again. */
  | { type: 'republished'; why: string }
  /** A follower reads from the log what it missed live. */
  | { type: 'reread'; why: RereadReason }
  /** A reader lost its consumer and goes on after the last record it gave. */
  | { type: 'reader-restarted'; what: string }
  /** An item was given up: it stays in the work stream until it is too old. */
  | { type: 'dead-letter'; role: Role };

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MIB = 1024 * 1024;

export const MAX_AGES_DEFAULT: MaxAges = { inputsMs: 6 * HOUR_MS, factsMs: 7 * DAY_MS };
export const MAX_BYTES_DEFAULT: MaxBytes = { inputs: 1024 * MIB, facts: 4096 * MIB, work: 256 * MIB, keyValue: 128 * MIB };
/** A retry within this time is recognised by its id: longer than a takeover, an election and a publisher's patience together. */
export const DUPLICATE_WINDOW_MS = 10 * MINUTE_MS;
export const ACK_WAIT_MS = 5_000;
export const OPEN_TIMEOUT_MS = 30_000;
