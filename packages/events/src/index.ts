export type { Cursor } from './cursor.ts';
export { formatCursor, parseCursor } from './cursor.ts';
export type { RecordFault } from './decode-input.ts';
export { decodeInputRecord, INPUT_DEPTH_MAX } from './decode-input.ts';
export type {
  ArtifactUpdated,
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
  StatusChanged,
  StepRecorded,
  TaskAggregate,
  TaskCreated,
  VisibleFact,
} from './facts.ts';
export { eventOf, isVisible } from './facts.ts';
export type {
  AgentInput,
  AgentRecord,
  ArtifactInput,
  CallInput,
  CancelInput,
  ClientInput,
  ClientRecord,
  CloseInput,
  CopyForwardInput,
  EndedInput,
  InputRecord,
  InputSource,
  LaneArtifact,
  MessageInput,
  OpenInput,
  Owner,
  Producer,
  ProfileName,
  RelayInput,
  RelayRecord,
  StatusInput,
  StepInput,
  TextInput,
  TimeoutInput,
  UnknownInput,
} from './inputs.ts';
export { isSameItem, isSameOwner, ordinalsOf } from './inputs.ts';
export type { AgentPresentation, ArtifactKind, NoticeTemplate, NoticeTemplates } from './presentation.ts';
export type { Role, TraceCarrier } from './subjects.ts';
export {
  fnv1a32,
  isAgentName,
  isRole,
  isTaskId,
  LIVE_PREFIX,
  LOG_PREFIX,
  liveSubject,
  logSubject,
  RAW_PREFIX,
  rawShardFilter,
  rawSubject,
  SHARDS_DEFAULT,
  SHARDS_MAX,
  shardOf,
  shardToken,
  TASK_ID_CHARS_MAX,
  TENANT_QUEUES,
  tenantQueueOf,
  tenantTokenOf,
  tenantWorkFilter,
  WORK_PREFIX,
  wakeSubject,
  workFilter,
  workSubject,
} from './subjects.ts';
export { titleCase } from './title-case.ts';
export type { Work, WorkCall } from './work.ts';
