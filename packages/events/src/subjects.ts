/*
 * Subjects and headers of the log. One subject per task, never per event; by `<shard>` the streams are split over Raft groups.
 * PROTOCOL.md section 2.
 */

import type { Owner } from './owner.ts';

export const RAW_PREFIX = 'a2a.raw';
export const LOG_PREFIX = 'a2a.log';
export const LIVE_PREFIX = 'a2a.live';
export const WORK_PREFIX = 'a2a.work';
export const READ_PREFIX = 'a2a.read';
const WAKE_PREFIX = 'a2a.wake';
const PRESENT_PREFIX = 'a2a.present';
const WORKER_PREFIX = 'a2a.worker';

/** Number of shards of a new log. Its first layout keeps them permanently; logs that earlier versions made have 16. */
export const SHARDS_DEFAULT = 256;
export const SHARDS_MAX = 256;
/** Stream groups of a new log. */
export const GROUPS_DEFAULT = 1;
export const GROUPS_MAX = 16;

/** A task id is one subject token of at most this many characters. */
export const TASK_ID_CHARS_MAX = 128;
const TASK_ID = /^[A-Za-z0-9_-]+$/;

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * FNV-1a, 32 bit, over the UTF-8 bytes. It is the hash that the server uses for `partition(n)`, so that a server-side mapping would agree.
 */
export function fnv1a32(text: string): number {
  let hash = FNV_OFFSET;
  for (const byte of Buffer.from(text, 'utf8')) {
    hash = Math.imul(hash ^ byte, FNV_PRIME);
  }
  return hash >>> 0;
}

/** True for 1 to 128 letters, digits, `_` and `-`: a subject token without `.`, `*`, `>` and white space. */
export function isTaskId(taskId: string): boolean {
  return taskId.length <= TASK_ID_CHARS_MAX && TASK_ID.test(taskId);
}

/** The layouts of a log (`Layouts`). A number of shards would not be enough, because a task of a later layout is in another shard. */
type PlacesTasks = { shardOf(taskId: string): number };

export function shardOf(taskId: string, layouts: PlacesTasks): number {
  return layouts.shardOf(taskId);
}

/** `00` to `ff`, and from `100` for the shards of later layouts. */
export function shardToken(shard: number): string {
  return shard.toString(16).padStart(2, '0');
}

function taskSubject(prefix: string, taskId: string, layouts: PlacesTasks): string {
  return `${prefix}.${shardToken(shardOf(taskId, layouts))}.${taskId}`;
}

export const rawSubject = (taskId: string, layouts: PlacesTasks, writer: Writer): string =>
  `${taskSubject(RAW_PREFIX, taskId, layouts)}.${writer}`;
/** The inputs of one task, of every writer. */
export const rawTaskFilter = (taskId: string, layouts: PlacesTasks): string => `${taskSubject(RAW_PREFIX, taskId, layouts)}.>`;
export const logSubject = (taskId: string, layouts: PlacesTasks): string => taskSubject(LOG_PREFIX, taskId, layouts);
export const liveSubject = (taskId: string, layouts: PlacesTasks): string => taskSubject(LIVE_PREFIX, taskId, layouts);
/** The facts of all tasks of one shard. */
export const logShardFilter = (shard: number): string => `${LOG_PREFIX}.${shardToken(shard)}.*`;
export const rawShardFilter = (shard: number): string => `${RAW_PREFIX}.${shardToken(shard)}.>`;

/**
 * Queues of a role for the work of tenants, in addition to its queue for work without an owner. A tenant's work waits in one of them, so
 * that it delays the work of only a few others.
 */
export const TENANT_QUEUES = 8;

/** Token of the party that shares a cluster with others: a tenant, or a caller without one. 8 hex digits; undefined without an owner. */
export function tenantTokenOf(owner: Owner | undefined): string | undefined {
  if (owner?.tenant === undefined && owner?.subject === undefined) return undefined;
  const { tenant, subject } = owner;
  return fnv1a32(JSON.stringify(tenant === undefined ? { subject } : { tenant }))
    .toString(16)
    .padStart(8, '0');
}

/** The queue of an owner's work, 0 to TENANT_QUEUES - 1; undefined: the queue for work without an owner. */
export function tenantQueueOf(owner: Owner | undefined): number | undefined {
  const tenant = tenantTokenOf(owner);
  return tenant === undefined ? undefined : queueOf(tenant);
}

const queueOf = (tenant: string): number => Number.parseInt(tenant, 16) % TENANT_QUEUES;

/** `role` is `supervisor` or `agent.<name>`. */
export function workSubject(role: Role, taskId: string, owner?: Owner): string {
  const tenant = tenantTokenOf(owner);
  const queue = tenant === undefined ? '' : `${queueOf(tenant)}.${tenant}.`;
  return `${WORK_PREFIX}.${role}.${queue}${taskId}`;
}

/** The work of one queue of a role; `queue` undefined: work without an owner. */
export const workFilter = (role: Role, queue?: number): string =>
  `${WORK_PREFIX}.${role}.${queue === undefined ? '*' : `${queue}.*.*`}`;

/** The work of one task of a role, whatever its owner. */
export const taskWorkFilters = (role: Role, taskId: string): string[] =>
  [taskId, `*.*.${taskId}`].map(rest => `${WORK_PREFIX}.${role}.${rest}`);

/** All work of a role, with and without an owner. */
export const roleWorkFilter = (role: Role): string => `${WORK_PREFIX}.${role}.>`;
/** The queue in the subject of a tenant's work. NaN for another subject. */
export const tenantQueueOfSubject = (subject: string): number => Number(subject.split('.').at(-3));

/** The work of one tenant of a role. */
export const tenantWorkFilter = (role: Role, tenant: string): string => `${WORK_PREFIX}.${role}.${queueOf(tenant)}.${tenant}.*`;

/** Subject on which agents ask relays to read the log for them. No stream stores it. */
export const readSubject = (agent: string): string => `${READ_PREFIX}.${agent}`;
/** The subject of requests to one relay. */
export const readerSubject = (agent: string, reader: string): string => `${readSubject(agent)}.${reader}`;

/** Subject on which the processes of an agent wake each other. No stream stores it. */
export const wakeSubject = (agent: string): string => `${WAKE_PREFIX}.${agent}`;

/** Subject to which a process that holds shards subscribes while it is connected. `member`: its key in the bucket of leases. */
export const presenceSubject = (member: string): string => `${PRESENT_PREFIX}.${member}`;

/** Subject on which workers of a role publish their ids when they start. No stream stores it. */
export const workersSubject = (role: Role): string => `${WORKER_PREFIX}.${role}`;
/** Subject on which a worker answers while its process runs and is connected. `worker`: the id of its entry in the bucket of requeues. */
export const workerSubject = (role: Role, worker: string): string => `${workersSubject(role)}.${worker}`;
/** Subject on which `worker` receives the answer of `other`, or the server's message that `other` is not connected. */
export const workerAnswerSubject = (role: Role, worker: string, other: string): string =>
  `${workerSubject(role, worker)}.${other}`;

export type Role = 'supervisor' | `agent.${string}`;

const AGENT_NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** The rule of `isAgentName`, for error messages. */
export const AGENT_NAME_RULE = '1 to 32 of a-z, 0-9 and - (not first)';

/** Whether a name follows AGENT_NAME_RULE: it is a subject token and a DNS label. */
export function isAgentName(name: string): boolean {
  return AGENT_NAME.test(name);
}

export function isRole(role: string): role is Role {
  return role === 'supervisor' || (role.startsWith('agent.') && isAgentName(role.slice('agent.'.length)));
}

/**
 * The service that appends an input. It is part of the subject, so that the permissions of a NATS user limit it: `client` is ingress for
 * its clients; `agent.<name>` is a sub-agent, for its own output and for the clients of its own server.
 */
export type Writer = 'client' | 'relay' | Role;

export function isWriter(writer: string): writer is Writer {
  return writer === 'client' || writer === 'relay' || isRole(writer);
}

/**
 * W3C trace context of the span that created a message. It travels in the message's headers and is never rewritten on the way.
 */
export type TraceCarrier = { traceparent?: string; tracestate?: string };
