export type { A2AErrorCode, ApprovalRequest, NewPushConfig, StreamResponse, Task } from '@hopline/a2a/client';
export { A2AError } from '@hopline/a2a/client';
export type { ClientView, ViewFile, ViewQuestion, ViewText, ViewTool, ViewUsage } from '@hopline/task-view';
export type { ListedAgent } from './agents.ts';
export { approvalResponse } from './approval-response.ts';
export type { TaskPage } from './calls.ts';
export type { Card, CardOptions } from './card.ts';
export type { Client } from './client.ts';
export { createClient } from './client.ts';
export type { ClientLimits } from './limits.ts';
export { CLIENT_LIMITS } from './limits.ts';
export type { CallOptions, Notice } from './notice.ts';
export type { OutgoingMessage } from './outgoing.ts';
export type { StreamEvent, StreamGap, StreamItem } from './stream-position.ts';
export { BEGINNING } from './stream-position.ts';
export type {
  AskOptions,
  ClientOptions,
  GetOptions,
  ListOptions,
  SendOptions,
  StreamOptions,
  SubscribeOptions,
  TaskClient,
  TaskSnapshot,
} from './task-client.ts';
export type { RetryLimits } from './tries.ts';
export { RETRY_LIMITS } from './tries.ts';
export { NoAnswerError } from './watch.ts';
