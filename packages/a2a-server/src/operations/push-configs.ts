import { A2AError, type ListPushRequest, type NewPushConfig } from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import type { PushConfigEntry } from '@hopline/log';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import type { Admission } from './admit-message.ts';
import { deletePushConfig, type PushPlace, pushConfigOf, pushConfigsOf, storePushConfig } from './push-store.ts';

/** CreateTaskPushNotificationConfig, tasks/pushNotificationConfig/set, tasks/pushNotification/set (S3-22). */
export async function pushCreate(door: A2AServer, ask: OperationContext): Promise<OperationResult> {
  requirePush(door);
  const { taskId, config } = ask.dialect.push.decodeCreate(ask.params);
  requireWebhook(door, config);
  const place = await placeOf(door, ask, taskId);
  return ask.dialect.push.encode(await storePushConfig(door, ask, place, config));
}

export async function pushGet(door: A2AServer, ask: OperationContext): Promise<OperationResult> {
  requirePush(door);
  const { taskId, id } = ask.dialect.push.decodeGet(ask.params);
  return ask.dialect.push.encode(await pushConfigOf(door, ask, await placeOf(door, ask, taskId), id));
}

export async function pushList(door: A2AServer, ask: OperationContext): Promise<OperationResult> {
  requirePush(door);
  const request = ask.dialect.push.decodeList(ask.params);
  const entries = await pushConfigsOf(door, ask, await placeOf(door, ask, request.taskId));
  const { shown, next } = pageOf(entries, request);
  return ask.dialect.push.encodeList(shown, next);
}

export async function pushDelete(door: A2AServer, ask: OperationContext): Promise<OperationResult> {
  requirePush(door);
  const { taskId, id } = ask.dialect.push.decodeDelete(ask.params);
  await placeOf(door, ask, taskId);
  await deletePushConfig(door, ask, taskId, id);
  return ask.dialect.push.deleted;
}

/** Throws PUSH_NOTIFICATION_NOT_SUPPORTED (S4-23, S4-36). */
function requirePush(door: A2AServer): void {
  if (!door.push) throw new A2AError('PUSH_NOTIFICATION_NOT_SUPPORTED');
}

function requireWebhook(door: A2AServer, { url }: NewPushConfig): void {
  const problem = door.webhookProblem(url);
  if (problem !== undefined) throw new A2AError('INVALID_PARAMS', { detail: `the URL of the webhook ${problem}` });
}

/** What a message brings along is checked before anything is done for it. */
export function requireStorable(door: A2AServer, config: NewPushConfig): void {
  requirePush(door);
  requireWebhook(door, config);
}

/** Before the message is said, so that no event of its turn can be missed (S4-22). */
export async function storeInline(
  door: A2AServer,
  ask: OperationContext,
  admission: Admission,
  config: NewPushConfig | undefined,
): Promise<void> {
  if (config === undefined) return;
  const generation = 'lease' in admission ? admission.lease.feed.view!.generation : 0;
  await storePushConfig(door, ask, { taskId: admission.taskId, generation }, config);
}

/** A client of the legacy form owns the id and may say where to tell before it says what to do (S3-23): then no task is there yet. Throws TASK_NOT_FOUND. */
async function placeOf(door: A2AServer, ask: OperationContext, taskId: string): Promise<PushPlace> {
  if (!isTaskId(taskId)) throw new A2AError('TASK_NOT_FOUND');
  const early = ask.dialect.name === 'legacy';
  const aggregate = await door.feeds.aggregate(taskId, ask.caller);
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
