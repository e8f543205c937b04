import { A2AError, invalidMember, type ListPushRequest, type NewPushConfig } from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import type { PushConfigEntry } from '@hopline/log';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { taskIdOf } from './client-task-id.ts';
import { deletePushConfig, type PushTarget, pushConfigOf, pushConfigsOf, storePushConfig } from './push-store.ts';
import { nameTask } from './resolve-message.ts';

/** CreateTaskPushNotificationConfig, tasks/pushNotificationConfig/set, tasks/pushNotification/set. */
export async function pushCreate(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  assertPushOffered(server);
  const { taskId, config } = context.dialect.push.decodeCreate(context.params);
  assertWebhookAllowed(server, config);
  const target = await targetOf(server, context, taskId);
  return context.dialect.push.encode(await storePushConfig(server, context, target, config));
}

export async function pushGet(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  assertPushOffered(server);
  const { taskId, id } = context.dialect.push.decodeGet(context.params);
  return context.dialect.push.encode(await pushConfigOf(server, context, await targetOf(server, context, taskId), id));
}

export async function pushList(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  assertPushOffered(server);
  const request = context.dialect.push.decodeList(context.params);
  const entries = await pushConfigsOf(server, context, await targetOf(server, context, request.taskId));
  const { page, next } = pageOf(entries, request);
  return context.dialect.push.encodeList(page, next);
}

export async function pushDelete(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  assertPushOffered(server);
  const { taskId, id } = context.dialect.push.decodeDelete(context.params);
  await targetOf(server, context, taskId);
  await deletePushConfig(server, context, taskId, id);
  return context.dialect.push.deleted;
}

/** Throws PUSH_NOTIFICATION_NOT_SUPPORTED. */
function assertPushOffered(server: A2AServer): void {
  if (!server.push) throw new A2AError('PUSH_NOTIFICATION_NOT_SUPPORTED');
}

function assertWebhookAllowed(server: A2AServer, { url }: NewPushConfig): void {
  const problem = server.webhookProblem(url);
  if (problem !== undefined) throw new A2AError('INVALID_PARAMS', { detail: `the webhook URL ${problem}` });
}

/** Validates an inline configuration before anything is stored for its message. */
export function assertStorable(server: A2AServer, config: NewPushConfig): void {
  assertPushOffered(server);
  assertWebhookAllowed(server, config);
}

/** The task of a configuration. A legacy client may set one before it starts the task (S3-23). Throws TASK_NOT_FOUND. */
async function targetOf(server: A2AServer, context: OperationContext, named: string): Promise<PushTarget> {
  const taskId = await taskIdOf(server, context, named);
  nameTask(context, taskId);
  if (!isTaskId(taskId)) throw new A2AError('TASK_NOT_FOUND');
  const mayPrecedeTask = context.dialect.name === 'legacy';
  const aggregate = await server.feeds.aggregate(taskId, context.caller);
  nameTask(context, taskId, aggregate?.contextId);
  if (aggregate === undefined && !mayPrecedeTask) throw new A2AError('TASK_NOT_FOUND');
  return { taskId, generation: aggregate?.generation };
}

/**
 * Pages are ordered by id and a page token contains the last id, so a deletion in between does not shift them. Throws INVALID_PARAMS for
 * any other token.
 */
function pageOf(entries: PushConfigEntry[], { pageSize = entries.length, pageToken = '' }: ListPushRequest) {
  const last = Buffer.from(pageToken, 'base64url').toString();
  if (tokenOf(last) !== pageToken) throw invalidMember('pageToken', 'must be the nextPageToken of an earlier response');
  const remaining = entries.filter(entry => entry.id > last);
  const page = remaining.slice(0, pageSize);
  return { page, next: page.length < remaining.length ? tokenOf(page.at(-1)!.id) : '' };
}

function tokenOf(id: string): string {
  return Buffer.from(id).toString('base64url');
}
