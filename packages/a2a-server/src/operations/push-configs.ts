import { A2AError, type ListPushRequest, type NewPushConfig } from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import type { PushConfigEntry } from '@hopline/log';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import type { ResolvedMessage } from './resolve-message.ts';
import { deletePushConfig, type PushTarget, pushConfigOf, pushConfigsOf, storePushConfig } from './push-store.ts';

/** CreateTaskPushNotificationConfig, tasks/pushNotificationConfig/set, tasks/pushNotification/set (S3-22). */
export async function pushCreate(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  assertPushOffered(server);
  const { taskId, config } = context.dialect.push.decodeCreate(context.params);
  assertWebhookAllowed(server, config);
  const place = await placeOf(server, context, taskId);
  return context.dialect.push.encode(await storePushConfig(server, context, place, config));
}

export async function pushGet(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  assertPushOffered(server);
  const { taskId, id } = context.dialect.push.decodeGet(context.params);
  return context.dialect.push.encode(await pushConfigOf(server, context, await placeOf(server, context, taskId), id));
}

export async function pushList(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  assertPushOffered(server);
  const request = context.dialect.push.decodeList(context.params);
  const entries = await pushConfigsOf(server, context, await placeOf(server, context, request.taskId));
  const { shown, next } = pageOf(entries, request);
  return context.dialect.push.encodeList(shown, next);
}

export async function pushDelete(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  assertPushOffered(server);
  const { taskId, id } = context.dialect.push.decodeDelete(context.params);
  await placeOf(server, context, taskId);
  await deletePushConfig(server, context, taskId, id);
  return context.dialect.push.deleted;
}

/** Throws PUSH_NOTIFICATION_NOT_SUPPORTED (S4-23, S4-36). */
function assertPushOffered(server: A2AServer): void {
  if (!server.push) throw new A2AError('PUSH_NOTIFICATION_NOT_SUPPORTED');
}

function assertWebhookAllowed(server: A2AServer, { url }: NewPushConfig): void {
  const problem = server.webhookProblem(url);
  if (problem !== undefined) throw new A2AError('INVALID_PARAMS', { detail: `the URL of the webhook ${problem}` });
}

/** What a message brings along is checked before anything is done for it. */
export function assertStorable(server: A2AServer, config: NewPushConfig): void {
  assertPushOffered(server);
  assertWebhookAllowed(server, config);
}

/** Before the message is said, so that no event of its turn can be missed (S4-22). */
export async function storeInline(
  server: A2AServer,
  context: OperationContext,
  resolved: ResolvedMessage,
  config: NewPushConfig | undefined,
): Promise<void> {
  if (config === undefined) return;
  const generation = 'lease' in resolved ? resolved.lease.feed.view!.generation : 0;
  await storePushConfig(server, context, { taskId: resolved.taskId, generation }, config);
}

/** A client of the legacy form owns the id and may say where to tell before it says what to do (S3-23): then no task is there yet. Throws TASK_NOT_FOUND. */
async function placeOf(server: A2AServer, context: OperationContext, taskId: string): Promise<PushTarget> {
  if (!isTaskId(taskId)) throw new A2AError('TASK_NOT_FOUND');
  const early = context.dialect.name === 'legacy';
  const aggregate = await server.feeds.aggregate(taskId, context.caller);
  if (aggregate === undefined && !early) throw new A2AError('TASK_NOT_FOUND');
  return { taskId, generation: aggregate?.generation };
}

/** Ids are in order, and a page token is the last one shown: what is deleted meanwhile moves nothing. */
function pageOf(entries: PushConfigEntry[], { pageSize = entries.length, pageToken }: ListPushRequest) {
  const last = pageToken === undefined ? '' : Buffer.from(pageToken, 'base64url').toString();
  const left = entries.filter(entry => entry.id > last);
  const shown = left.slice(0, pageSize);
  const next = shown.length < left.length ? Buffer.from(shown.at(-1)!.id).toString('base64url') : '';
  return { shown, next };
}
