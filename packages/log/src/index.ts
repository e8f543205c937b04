export { backoffMs, sleepUnlessAborted } from './backoff.ts';
export { BoundedMap } from './bounded-map.ts';
export { COALESCE_SETTINGS, coalesceSettingsOf } from './coalesce-settings.ts';
export { DEFAULT_AGENT_SETTINGS, defaultAgentOf } from './default-agent.ts';
export {
  HistoryLost,
  InputUnreadable,
  LaterVersion,
  LogConflict,
  LogDenied,
  LogFull,
  LogMismatch,
  LogUnavailable,
  NO_LONGER_NEEDED,
  RecordTooLarge,
  Requeued,
  Superseded,
  TenantFull,
} from './errors.ts';
export type {
  AppendOptions,
  FactLog,
  FollowStart,
  LogExtent,
  ReadStart,
  RecordFacts,
  RecordMark,
  StoredFacts,
  StreamExtent,
} from './fact-log.ts';
export { recordFactsOf, toLogExtent } from './fact-log.ts';
export { FairSlots, type Slot } from './fair-slots.ts';
export type { FollowOptions, FollowSource, LiveRecord, RereadReason, Tail } from './follow.ts';
export { FOLLOW_BUFFER_BYTES_MAX, FOLLOW_BUFFER_RECORDS_MAX, follow, PUSH_AFTER_CHECKS, TAIL_CHECK_MS } from './follow.ts';
export { type BucketView, followBucket } from './follow-bucket.ts';
export { heapWatch, SLOTS_DEFAULT, SLOTS_DOC } from './heap-watch.ts';
export type { InputAppendOptions, InputLog, RejectedInput, StoredInput, Unread } from './input-log.ts';
export { InputWriter, RECORD_INPUT_BYTES_MAX, RECORD_TOKENS_MAX, WRITER_WAITING_BYTES_MAX } from './input-writer.ts';
export { type Change, type Entry, type KeyValue, MATCHES_PER_REQUEST_MAX } from './key-value.ts';
export {
  agentsOf,
  hasText,
  LISTED_AGENTS_BYTES_MAX,
  LISTED_TASK_BYTES_MAX,
  LISTED_TEXT_BYTES_MAX,
  type ListedTask,
  listedTaskOf,
  taskOfRow,
} from './listed-task.ts';
export { AGENT_REMEMBERED_MS, AGENT_SILENCE_MS_MAX, isAgentSkill, LiveAgents, type RegisteredAgent } from './live-agents.ts';
export type {
  AgentRegistration,
  ContextEntry,
  ErasedRecords,
  LeaseValue,
  Log,
  MessageIdEntry,
  PushConfigEntry,
  PushProgressEntry,
  ShardProgress,
} from './log.ts';
export { CONTEXT_TASKS_MAX } from './log.ts';
export { chosenTaskKey, messageIdKey } from './message-id-keys.ts';
export {
  factsId,
  IMPORTER,
  isKey,
  isWakeKey,
  KEY_CHARS_MAX,
  relayOfFactsId,
  requireAgent,
  requireKey,
  requireRecordId,
  requireRole,
  requireTaskId,
  requireWakeKey,
  requireWriter,
  taskOfFactsId,
} from './names.ts';
export type { Presence } from './presence.ts';
export { QueueWaits } from './queue-waits.ts';
export { followTask, fromStart, newestOfTurn, readTask, requireNewest, startSeqOf } from './read-task.ts';
export { readableBytes } from './readable-input.ts';
export { RecentExtent } from './recent-extent.ts';
export { requestLost } from './request-lost.ts';
export { type Release, Semaphore } from './semaphore.ts';
export { SharedNext } from './shared-next.ts';
export type { StoredSpan, TenantBytes } from './stored-span.ts';
export type { TaskIndexEntry } from './task-index-entry.ts';
export {
  addEnded,
  ENDED_ADDED_MAX,
  ENDED_NEWEST_KEPT,
  ENDED_NEWEST_MAX,
  ENDED_NEWEST_UNITS_MAX,
  ENDED_NEWEST_UNITS_MIN,
  ENDED_PAGES_MAX,
  type EndedPage,
  type EndedPageRange,
  type EndedTask,
  type EndedTasks,
  endedKey,
  endedPageKey,
  endedTaskOf,
  isEndedTasks,
  isInFirstLayout,
  isOwnerFilter,
  isTaskEntry,
  listKeyOf,
  listPrefixOf,
  openFilter,
  ownerFilters,
  parseListKey,
  putTask,
  removedBefore,
  removeEnded,
  shardEntriesFilter,
  shardListsFilter,
  shardOfList,
  type TaskListValue,
} from './task-lists.ts';
export {
  bytesFrom,
  changeSpans,
  groupOfTenantBytes,
  isTenantBytes,
  joinSpans,
  STORED_SPANS_MAX,
  TENANT_BYTES_BEGUN,
  tenantBytesFilter,
  tenantBytesKey,
} from './tenant-bytes.ts';
export { TextPace } from './text-pace.ts';
export { TokenBucket } from './token-bucket.ts';
export type { WakeUps } from './wake-ups.ts';
export {
  isWebhookCountKey,
  putWebhookCount,
  readWebhookUsage,
  removeWebhookCount,
  type WebhookUsage,
  webhookBytes,
  webhookCountKey,
} from './webhook-counts.ts';
export type { DeliveryBounds, Job, TakeOptions, WorkGate, WorkQueue } from './work-queue.ts';
export {
  ATTEMPTS_MAX_DEFAULT,
  deliveriesMax,
  newestForJob,
  newestForWork,
  purposeOf,
  REDELIVERY_MS_BASE,
  REDELIVERY_MS_MAX,
  REDELIVERY_MS_MIN,
  REQUEUES_MAX_DEFAULT,
  ROLE_ITEMS_MAX_DEFAULT,
  ROOM_READ_MS,
  SETTLE_DELIVERIES_MAX,
  TENANT_ITEMS_MAX_DEFAULT,
  TENANT_SLOTS_SHARE_DEFAULT,
  WORK_NEWEST_BYTES_MAX,
  WORK_NEWEST_MS_MAX,
} from './work-queue.ts';
