import { isObject, parseObject } from '@hopline/a2a';
import { isAgentName, isTaskId, type Owner, TENANT_QUEUES } from '@hopline/events';
import { isKey } from '@hopline/log';
import type { ConsumerSettings } from '../stream-requests.ts';

/**
 * Requests of sub-agents to relays, which read the log for them: a sub-agent may read only its own tasks, and NATS subjects cannot express
 * which those are. PROTOCOL.md section 8.
 *
 * `by`: the path to an earlier task of the conversation. It begins with a task that the agent may read, and each task on it names the next
 * one.
 */
export type ReadRequest =
  | { op: 'newest'; task: string; by?: readonly string[] }
  | { op: 'newest-of'; tasks: readonly string[] }
  | { op: 'read'; task: string; by?: readonly string[]; from: number; upTo?: number }
  | { op: 'lost'; task: string; seq: number; id?: string }
  | { op: 'input'; task: string; seq: number }
  | { op: 'index'; task: string }
  | { op: 'lists'; owner: Owner; filters: readonly string[] }
  | { op: 'count'; owner: Owner; filter: string }
  | { op: 'listed' }
  | { op: 'entry'; bucket: EntryBucket; key: string }
  | { op: 'stream'; stream: string; filter?: string }
  | { op: 'consumer'; queue?: number }
  | ({ op: 'ensure-consumer'; queue?: number } & ConsumerSettings)
  | { op: 'open'; feed: string }
  | FeedRequest;

/** Buckets of which an agent reads single entries. */
const ENTRY_BUCKETS = ['agents', 'messageIds', 'contexts', 'requeues'] as const;
export type EntryBucket = (typeof ENTRY_BUCKETS)[number];

/** Requests to the relay that serves a feed. */
export type FeedRequest =
  | { op: 'keep'; feed: string }
  | { op: 'follow'; feed: string; tasks: readonly FollowedTask[] }
  | { op: 'leave'; feed: string; n: number };

/**
 * A task in a feed. `n`: its number there. `after`: sequence of the newest record that the agent knows; 0 if it knows none. `watch`: the
 * relay also reports the newest record, which it reads from the leader, so that silence means that no record was stored.
 */
export type FollowedTask = { n: number; task: string; after: number; skipsText?: true; watch?: true };

/** Records of one answer. The agent requests the rest, and thus decides how fast it reads. */
export const RECORDS_PER_ANSWER_MAX = 512;
/** Tasks in one request. */
export const FOLLOWS_PER_REQUEST_MAX = 256;
const TASKS_PER_REQUEST_MAX = 1_024;
/** Maximum number of keys in one request: 160 KiB with the longest keys. */
export const FILTERS_PER_REQUEST_MAX = 1_024;
/**
 * Maximum length of the path to an earlier task of a conversation, which grows with each fork: more than FORK_PATH_MAX of
 * packages/context-history.
 */
const PATH_TASKS_MAX = 12;
const FILTER_CHARS_MAX = 256;
const NAME_CHARS_MAX = 1_024;
/** Larger than any time in milliseconds and any number that a worker sets for its queue. */
const SETTING_MAX = 24 * 60 * 60_000;

/** The request in a payload; undefined for a payload that is not a request. */
export function parseRequest(payload: string): ReadRequest | undefined {
  const value = parseObject(payload);
  return value !== undefined && hasForm(value) ? (value as ReadRequest) : undefined;
}

type Members = { [name: string]: unknown };

function hasForm({ op, ...members }: Members): boolean {
  const { task, tasks, by, from, upTo, seq, id, owner, filter, filters, feed, n } = members;
  const { bucket, key, stream, queue, ackWaitMs, deliveriesMax, turnsMax } = members;
  switch (op) {
    case 'newest':
      return isTask(task) && isPath(by);
    case 'newest-of':
      return isList(tasks, TASKS_PER_REQUEST_MAX, isTask);
    case 'read':
      return isTask(task) && isPath(by) && isCount(from) && (upTo === undefined || isCount(upTo));
    case 'lost':
      return isTask(task) && isCount(seq) && (id === undefined || isText(id, NAME_CHARS_MAX));
    case 'input':
      return isTask(task) && isCount(seq);
    case 'index':
      return isTask(task);
    case 'lists':
      return isOwner(owner) && isList(filters, FILTERS_PER_REQUEST_MAX, isFilter);
    case 'count':
      return isOwner(owner) && isFilter(filter);
    case 'listed':
      return true;
    case 'entry':
      return ENTRY_BUCKETS.some(name => name === bucket) && isKey(key);
    case 'stream':
      return isText(stream, NAME_CHARS_MAX) && (filter === undefined || isText(filter, NAME_CHARS_MAX));
    case 'consumer':
      return isQueue(queue);
    case 'ensure-consumer':
      return isQueue(queue) && [ackWaitMs, deliveriesMax, turnsMax].every(isSetting);
    case 'open':
    case 'keep':
      return isText(feed, NAME_CHARS_MAX);
    case 'follow':
      return isText(feed, NAME_CHARS_MAX) && isList(tasks, FOLLOWS_PER_REQUEST_MAX, isFollowed);
    case 'leave':
      return isText(feed, NAME_CHARS_MAX) && isCount(n);
    default:
      return false;
  }
}

function isFollowed(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { n, task, after, skipsText, watch } = value;
  return isCount(n) && isTask(task) && isCount(after) && isFlag(skipsText) && isFlag(watch);
}

const isTask = (value: unknown): value is string => typeof value === 'string' && isTaskId(value);
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isFlag = (value: unknown): boolean => value === undefined || value === true;
const isPath = (value: unknown): boolean => value === undefined || isList(value, PATH_TASKS_MAX, isTask);
const isQueue = (value: unknown): boolean => value === undefined || (isCount(value) && (value as number) < TENANT_QUEUES);
const isSetting = (value: unknown): boolean => isCount(value) && (value as number) > 0 && (value as number) <= SETTING_MAX;
const isFilter = (value: unknown): boolean => isText(value, FILTER_CHARS_MAX) && !/[\s>]/.test(value as string);
const isText = (value: unknown, charsMax: number): boolean => typeof value === 'string' && value.length <= charsMax;

function isList(value: unknown, max: number, isValid: (entry: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length <= max && value.every(isValid);
}

function isOwner(value: unknown): boolean {
  if (!isObject(value)) return false;
  return [value.tenant, value.subject].every(name => name === undefined || isText(name, NAME_CHARS_MAX));
}

/**
 * The agent that the subject of a request names, which NATS limits to the names that its login may use, and the relay if the request is for
 * only one. `prefix`: the part of the subject before them, with its dot.
 */
export function parseReadSubject(subject: string, prefix: string): { agent: string; reader: string | undefined } | undefined {
  const [agent = '', reader, ...more] = subject.slice(prefix.length).split('.');
  return subject.startsWith(prefix) && isAgentName(agent) && more.length === 0 ? { agent, reader } : undefined;
}

/**
 * About how many messages a relay receives and sends for an answer. `shards`: of the log. The lists of tasks that filters match are not known before they
 * are read.
 */
export function messagesFor(request: ReadRequest, shards: number): number {
  switch (request.op) {
    case 'newest-of':
    case 'follow':
      return request.tasks.length;
    case 'read':
      return RECORDS_PER_ANSWER_MAX;
    case 'lists':
      return request.filters.length;
    case 'listed':
      return shards;
    default:
      return 1;
  }
}
