/** For clients on pages, without the schemas of a server and without anything that a client does not call. */
import type { ClientDialect } from './dialect.ts';
import { clientDialect03 } from './dialect-0.3/client-dialect.ts';
import { clientDialect10 } from './dialect-1.0/client-dialect.ts';

export type { ApprovalRequest } from './approval.ts';
export { approvalRequestOf, approvalResponsePart } from './approval.ts';
export { fullJitterMs } from './backoff.ts';
export type { ClientDialect, Operation } from './dialect.ts';
export type { A2AErrorCode, A2AErrorOptions } from './errors.ts';
export { A2A_ERRORS, A2AError } from './errors.ts';
export { failureReason } from './failure-reason.ts';
export { textOf } from './fold.ts';
export type { JsonObject } from './json-value.ts';
export { isObject, present } from './json-value.ts';
export type { NewPushConfig, SendRequest } from './requests.ts';
export { parseRetryAfter } from './retry-after.ts';
export { decodeSse, SSE_CONTENT_TYPE } from './sse.ts';
export type {
  Artifact,
  InterruptedState,
  Message,
  Metadata,
  Part,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskState,
  TaskStatus,
} from './types.ts';
export { isInProgress, isInterrupted, isTerminal } from './types.ts';
export { VERSION_HEADER } from './version.ts';

export const CLIENT_DIALECTS: Readonly<Record<'1.0' | '0.3', ClientDialect>> = { '1.0': clientDialect10, '0.3': clientDialect03 };
