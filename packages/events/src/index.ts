export type { CallContent, WorkingCall } from './call.ts';
export { workingCall } from './call.ts';
export { CLUSTER_DEPTH_KEY, CLUSTER_DEPTH_MAX, clusterDepthOf } from './cluster-depth.ts';
export { contextIdOf, firstTaskOf } from './context-id.ts';
export type { Cursor, ForkPoint } from './cursor.ts';
export { FORK_KEY, forkPointOf, formatCursor, parseCursor } from './cursor.ts';
export type { RecordFault } from './decode-input.ts';
export { decodeInputRecord, INPUT_DEPTH_MAX, isMalformedInput } from './decode-input.ts';
export type {
  AgentStepRecorded,
  ArtifactUpdated,
  CallAuthRequest,
  CallEnded,
  CallStarted,
  CallState,
  ChunkProvenance,
  CopiedFacts,
  Fact,
  FactRecord,
  LaneOpened,
  LaneState,
  MessageReceived,
  PendingRequest,
  ProducerState,
  RemoteRunStarted,
  StatusChanged,
  StepRecorded,
  Takeover,
  TaskAggregate,
  TaskCreated,
  VisibleFact,
} from './facts.ts';
export { entryOf, eventOf, foldedOrdinal, hasWritten, isKnownFact, isVisible } from './facts.ts';
export type {
  AgentInput,
  AgentRecord,
  AgentStepInput,
  ArtifactInput,
  CallInput,
  CancelInput,
  ClientInput,
  ClientRecord,
  CloseInput,
  CopyForwardInput,
  EndedInput,
  InputKind,
  InputRecord,
  InputSource,
  MessageInput,
  ModelTiming,
  OpenInput,
  Producer,
  ProfileName,
  QueuedInput,
  RelayInput,
  RelayRecord,
  RemoteRunInput,
  StatusInput,
  StepInput,
  StepOutcome,
  TakenWork,
  TextInput,
  TimeoutInput,
  ToolTiming,
  TurnQueuedInput,
  UnknownInput,
  WorkGoneInput,
} from './inputs.ts';
export { isSameItem, mayAppend, ordinalsOf, writerOf } from './inputs.ts';
export { GROUPS_TOTAL_MAX, LAYOUTS_MAX, type Layout, Layouts, SHARDS_TOTAL_MAX, timeOfTaskId } from './layouts.ts';
export { isSameOwner, type Owner } from './owner.ts';
export type {
  AgentPresentation,
  ArtifactKind,
  LaneArtifact,
  NoticePhase,
  NoticeTemplate,
  NoticeTemplates,
} from './presentation.ts';
export { isQueueNotice, queueNotice, queueText } from './queue-notice.ts';
export type { Role, TraceCarrier, Writer } from './subjects.ts';
export {
  AGENT_NAME_RULE,
  fnv1a32,
  GROUPS_DEFAULT,
  GROUPS_MAX,
  isAgentName,
  isRole,
  isTaskId,
  isWriter,
  LIVE_PREFIX,
  LOG_PREFIX,
  liveSubject,
  logShardFilter,
  logSubject,
  presenceSubject,
  RAW_PREFIX,
  READ_PREFIX,
  rawShardFilter,
  rawSubject,
  rawTaskFilter,
  readerSubject,
  readSubject,
  roleWorkFilter,
  SHARDS_DEFAULT,
  SHARDS_MAX,
  shardOf,
  shardToken,
  TASK_ID_CHARS_MAX,
  TENANT_QUEUES,
  taskWorkFilters,
  tenantQueueOf,
  tenantQueueOfSubject,
  tenantTokenOf,
  tenantWorkFilter,
  WORK_PREFIX,
  wakeSubject,
  workerAnswerSubject,
  workerSubject,
  workersSubject,
  workFilter,
  workSubject,
} from './subjects.ts';
export { titleCase } from './title-case.ts';
export type { TokenUsage } from './token-usage.ts';
export { addTokens, TOKEN_COUNTS } from './token-usage.ts';
export type { Work, WorkCall } from './work.ts';
export { workOfCall } from './work.ts';
