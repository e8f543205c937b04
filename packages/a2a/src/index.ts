export type { ApprovalDecision, ApprovalRequest, ApprovalResponse } from './approval.ts';
export {
  approvalQuestion,
  approvalRequestOf,
  approvalRequestParts,
  approvalResponseOf,
  approvalResponsePart,
  isShownCall,
  readApprovalResponse,
} from './approval.ts';
export { fullJitterMs } from './backoff.ts';
export { codePoints, cutIndex, differingSpan } from './code-points.ts';
export type { RemoteResponse } from './decode-event.ts';
export { decodeRemoteEvent, decodeRemoteResponse, INTERPRETED_MEMBERS } from './decode-event.ts';
export type { DecodedEvent, Dialect, Operation, PushForm, UnknownEvent } from './dialect.ts';
export { OPERATIONS, operationOf } from './dialect.ts';
export { withJsonFieldNames } from './dialect-1.0/decode.ts';
export { REQUEST_SCHEMAS } from './dialect-1.0/dialect.ts';
export { decodeListTasks } from './dialect-1.0/list-tasks.ts';
export { isLegacyTask, legacyOrigin } from './dialect-legacy/origin.ts';
export { clientTaskId, clientTaskIdCharsMax, storedTaskId } from './dialect-legacy/task-id.ts';
export { DIALECTS, isAmbiguous, unversionedDialect } from './dialects.ts';
export type { A2AErrorCode, A2AErrorOptions, A2AErrorRow } from './errors.ts';
export { A2A_ERRORS, A2AError, errorDetails, invalidMember } from './errors.ts';
export { failureReason } from './failure-reason.ts';
export { setFastPaths, takesFastPaths } from './fast-paths.ts';
export type { FoldedArtifact, Violation, ViolationRule } from './fold.ts';
export { Fold, foldEvents, textOf, VIOLATIONS } from './fold.ts';
export type { HttpJsonFailure } from './http-json.ts';
export { A2A_JSON_TYPE, httpJsonFailure, paramsOfBody, paramsOfQuery } from './http-json.ts';
export type { ParsedRequest, RpcFailure, RpcId, RpcRequest } from './json-rpc.ts';
export { parseRequest, RPC_ID_CHARS_MAX, rpcFailure, rpcSuccessAround } from './json-rpc.ts';
export { JsonStream } from './json-stream.ts';
export type { JsonObject } from './json-value.ts';
export { isDeeperThan, isObject, isTime, JSON_DEPTH_MAX, parseObject, present } from './json-value.ts';
export { fitsModes, outputModesOf } from './media-types.ts';
export type {
  CancelRequest,
  GetTaskRequest,
  ListPushRequest,
  ListTasksRequest,
  NewPushConfig,
  PushConfig,
  SendRequest,
  SubscribeRequest,
} from './requests.ts';
export { parseRetryAfter } from './retry-after.ts';
export { ID_CHARS_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PARTS_MAX, PUSH_CONFIGS_MAX } from './schema/limits.ts';
export type { SseEvent, SseFrame } from './sse.ts';
export {
  decodeSse,
  decodeSseBatches,
  SSE_CONTENT_TYPE,
  SSE_EVENT_BYTES_MAX,
  SseDecoder,
  sseComment,
  sseFrame,
} from './sse.ts';
export type {
  AgentSkill,
  Artifact,
  CardReport,
  InterruptedState,
  Message,
  Metadata,
  Part,
  Role,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskState,
  TaskStatus,
  TaskStatusUpdateEvent,
  TerminalState,
  TimelineEntry,
} from './types.ts';
export { isInProgress, isInterrupted, isPlainText, isTerminal, stateWord, TASK_STATES } from './types.ts';
export type { DialectName } from './version.ts';
export { DIALECT_NAMES, namedDialect, VERSION_HEADER, VERSION_QUERY } from './version.ts';
