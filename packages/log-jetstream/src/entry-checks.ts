import { isObject, isTime } from '@hopline/a2a';
import { isRole, isTaskId } from '@hopline/events';
import { isWebhookCountKey, parseListKey } from '@hopline/log';
import type { BUCKETS } from './names.ts';

/**
 * Whether an entry of a bucket has the members that its readers rely on. Several services, agents and sometimes operators write these
 * buckets. An invalid entry counts as absent, so that readers can still use the others.
 */
export type EntryCheck = (entry: Record<string, unknown>, key: string) => boolean;

const isText = (value: unknown) => typeof value === 'string';
const isNumber = (value: unknown) => Number.isFinite(value);
const optional = (check: (value: unknown) => boolean) => (value: unknown) => value === undefined || check(value);
const isOptionalText = optional(isText);
const isOptionalNumber = optional(isNumber);
const isOptionalTime = optional(isTime);
const isTask = (value: unknown) => typeof value === 'string' && isTaskId(value);

const isOwner = optional(value => isObject(value) && isOptionalText(value.tenant) && isOptionalText(value.subject));
const isAuthentication = optional(value => isObject(value) && isText(value.scheme) && isOptionalText(value.credentials));
const isRequest = optional(value => isObject(value) && isNumber(value.n) && isTime(value.at));

const isMessages = (value: unknown) => Array.isArray(value) && value.every(one => isObject(one) && Array.isArray(one.parts));
const isListed = optional(
  value =>
    isObject(value) &&
    isNumber(value.messages) &&
    optional(isMessages)(value.history) &&
    (value.message === undefined || isMessages([value.message])) &&
    (value.metadata === undefined || isObject(value.metadata)) &&
    isOptionalText(value.question) &&
    isOptionalText(value.answer) &&
    optional(agents => Array.isArray(agents) && agents.every(isText))(value.agents),
);

const isTaskEntry: EntryCheck = (entry, taskId) =>
  isTaskId(taskId) &&
  isText(entry.contextId) &&
  typeof entry.role === 'string' &&
  isRole(entry.role) &&
  isText(entry.state) &&
  isOwner(entry.owner) &&
  isNumber(entry.generation) &&
  isTime(entry.at) &&
  isNumber(entry.startSeq) &&
  isOptionalTime(entry.startStoredAt) &&
  [entry.foldedSeq, entry.seq, entry.storedBytes].every(isOptionalNumber) &&
  isRequest(entry.inputRequest) &&
  isRequest(entry.authRequest) &&
  isListed(entry.listed);

const isEndedTask = (row: unknown) => {
  if (!Array.isArray(row)) return false;
  const [taskId, contextId, state, at, generation, seq, listed] = row;
  const isRow = isTask(taskId) && isText(contextId) && isText(state) && isTime(at) && isNumber(generation) && isNumber(seq);
  return isRow && isListed(listed);
};
/** A page of ended tasks has no ranges. */
const areRanges = optional(
  ranges =>
    Array.isArray(ranges) &&
    ranges.every(
      range => isObject(range) && [range.n, range.tasks, range.from, range.to, range.seqFrom, range.seqTo].every(isNumber),
    ),
);

const areSpans = (spans: unknown) =>
  Array.isArray(spans) && spans.every(span => Array.isArray(span) && span.length === 2 && span.every(isNumber));

/** The entries of agents and of requeues are checked by their readers. Only relays and notifiers write leases. */
type CheckedBucket = Exclude<keyof typeof BUCKETS, 'agents' | 'requeues' | 'leases'>;

export const ENTRY_CHECKS: Readonly<Record<CheckedBucket, EntryCheck>> = {
  tasks: isTaskEntry,
  taskLists: (entry, key) => {
    const { taskId } = parseListKey(key);
    if (taskId !== undefined) return isTaskEntry(entry, taskId);
    if (key.endsWith('.stored')) return areSpans(entry.stored);
    return Array.isArray(entry.ended) && entry.ended.every(isEndedTask) && areRanges(entry.pages);
  },
  messageIds: ({ taskId, fingerprint }) => isTask(taskId) && isText(fingerprint),
  contexts: ({ tasks }) => Array.isArray(tasks) && tasks.every(isTask),
  pushConfigs: ({ taskId, id, url, dialect, after, owner, waitsUntil, token, authentication, sealed, bytes }, key) =>
    isWebhookCountKey(key) ||
    (isTask(taskId) &&
      isText(id) &&
      typeof url === 'string' &&
      URL.canParse(url) &&
      isText(dialect) &&
      isNumber(after) &&
      isOwner(owner) &&
      isOptionalTime(waitsUntil) &&
      isOptionalNumber(bytes) &&
      [token, sealed].every(isOptionalText) &&
      isAuthentication(authentication)),
  pushProgress: ({ config, generation, seq, failures, sending, failingSince, retryAt, retryMs }) =>
    [config, generation, seq, failures].every(isNumber) &&
    [sending, retryMs].every(isOptionalNumber) &&
    [failingSince, retryAt].every(isOptionalTime),
};
