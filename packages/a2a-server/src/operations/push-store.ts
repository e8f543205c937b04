import { isDeepStrictEqual } from 'node:util';
import { A2AError, type DialectName, type NewPushConfig, PUSH_CONFIGS_MAX, type PushConfig } from '@hopline/a2a';
import { isSameOwner, type Owner } from '@hopline/events';
import {
  type Entry,
  LogDenied,
  type PushConfigEntry,
  type PushProgressEntry,
  putWebhookCount,
  removeWebhookCount,
  type WebhookUsage,
  webhookBytes,
  webhookCountKey,
} from '@hopline/log';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { FeedLease } from '../feed/task-feeds.ts';
import { fromLog } from '../log-faults.ts';
import { requireOwnTask } from './task-response.ts';

/** Push configurations in the log. Another owner's configuration is treated as absent. */

/** base64url has no dot, so everything before the dot is the task id. */
function keyOf(taskId: string, id: string): string {
  return `${taskId}.${Buffer.from(id).toString('base64url')}`;
}

/** A configuration whose task never starts expires at `waitsUntil`; once the task exists, it does not expire. */
function isExpired({ waitsUntil }: PushConfigEntry, taskExists: boolean): boolean {
  return !taskExists && waitsUntil !== undefined && waitsUntil <= Date.now();
}

export type PushTarget = {
  taskId: string;
  /** Generation of the task; undefined while it does not exist. */
  generation: number | undefined;
};

/** The caller's configurations of a task, ordered by id. */
export async function pushConfigsOf(
  server: A2AServer,
  context: OperationContext,
  { taskId, generation }: PushTarget,
): Promise<PushConfigEntry[]> {
  const entries = await orFault(server.log.pushConfigs.under(taskId), taskId);
  const ofCaller = entries.map(entry => entry.value).filter(value => isSameOwner(value.owner, context.caller));
  return ofCaller.filter(value => !isExpired(value, generation !== undefined)).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Delivery state of a webhook for its owner, without secrets. Times are epoch milliseconds. */
export type PushDeliveries = {
  id: string;
  /** The query is removed, because it may be a secret of the receiver. */
  url: string;
  /** Dialect of the bodies. */
  dialect: DialectName;
  /** `abandoned`: deliveries failed for too long or were refused, and the webhook receives nothing more. */
  state: 'delivering' | 'failing' | 'delivered' | 'abandoned';
  /** The webhook has received the events up to this generation, or did not ask for them. */
  generation: number;
  /** Failed attempts at the next delivery. */
  failures: number;
  failingSince?: number;
  /** Time of the next attempt. */
  retryAt?: number;
};

/** The caller's webhooks of its own task, with the progress of the notifier, ordered by id. Throws TASK_NOT_FOUND. */
export async function pushDeliveriesOf(server: A2AServer, caller: Owner, taskId: string): Promise<PushDeliveries[]> {
  await requireOwnTask(server, caller, taskId);
  const [configs, progress] = await Promise.all([
    orFault(server.log.pushConfigs.under(taskId), taskId),
    orFault(server.log.pushProgress.under(taskId), taskId),
  ]);
  const known = new Map(progress.map(({ key, value }) => [key, value]));
  return configs
    .filter(({ value }) => isSameOwner(value.owner, caller))
    .map(({ key, value, revision }) => {
      const found = known.get(key);
      // Progress of an earlier configuration with this id.
      return deliveriesOf(value, found?.config === revision ? found : undefined);
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

function deliveriesOf({ id, url, dialect, after }: PushConfigEntry, progress: PushProgressEntry | undefined): PushDeliveries {
  const { generation = after, failures = 0, failingSince, retryAt, over } = progress ?? {};
  const { origin, pathname } = new URL(url);
  const isFailing = over === undefined && failures > 0;
  return {
    id,
    url: origin + pathname,
    dialect,
    generation,
    failures,
    state: over ?? (isFailing ? 'failing' : 'delivering'),
    ...(isFailing && failingSince !== undefined && { failingSince }),
    ...(isFailing && retryAt !== undefined && { retryAt }),
  };
}

/**
 * The configuration with this id. Without an id: the one with the task's id or, if there is none, the first one. Throws TASK_NOT_FOUND
 * ([A2A 1.0] 3.1.8).
 */
export async function pushConfigOf(
  server: A2AServer,
  context: OperationContext,
  target: PushTarget,
  id: string | undefined,
): Promise<PushConfigEntry> {
  const entries = await pushConfigsOf(server, context, target);
  const found = entries.find(entry => entry.id === (id ?? target.taskId)) ?? (id === undefined ? entries[0] : undefined);
  if (found !== undefined) return found;
  // The response must be the same for an unknown task and for another owner's task.
  if (target.generation === undefined) throw new A2AError('TASK_NOT_FOUND', { taskId: target.taskId });
  throw new A2AError('TASK_NOT_FOUND', { detail: 'the task has no push configuration with this id', taskId: target.taskId });
}

/** Stores an inline configuration before its message is appended, so that no event of the turn is missed (S4-22). */
export async function storeInline(
  server: A2AServer,
  context: OperationContext,
  { taskId, lease }: { taskId: string; lease?: FeedLease },
  config: NewPushConfig | undefined,
): Promise<void> {
  if (config === undefined) return;
  await storePushConfig(server, context, { taskId, generation: lease?.feed.generation ?? 0 }, config);
}

/**
 * Stores a configuration. It replaces one with the same id, unless the two are identical. If the id is missing, the task's id is used, as
 * in both official SDKs, so that a retry stores nothing twice. Events after the task's generation are delivered. Throws
 * UNSUPPORTED_OPERATION beyond PUSH_CONFIGS_MAX.
 */
export async function storePushConfig(
  server: A2AServer,
  context: OperationContext,
  target: PushTarget,
  config: NewPushConfig,
): Promise<PushConfig> {
  const { taskId, generation } = target;
  const { pushConfigs } = server.log;
  const key = keyOf(taskId, config.id ?? taskId);
  const known = await entryAt(server, context, target, key);
  const { waitsUntil, after, bytes: bytesBefore, ...before } = known?.value ?? {};
  const requested = requestedEntry(context, taskId, config);
  const progress = known === undefined ? undefined : (await orFault(server.log.pushProgress.get(key), taskId))?.value;
  if (waitsUntil === undefined && progress?.over !== 'abandoned' && isDeepStrictEqual(before, requested)) return requested;
  const continues = known?.value.url === config.url && after !== undefined;
  const bytes = webhookBytes(key, { ...requested, after: 0 });
  const entry: PushConfigEntry = {
    ...requested,
    // For a known URL, deliveries continue after the last one, even with another token or after the webhook was abandoned. For a new URL
    // they start at the current generation.
    after: continues ? Math.max(after, progress?.generation ?? 0) : (generation ?? 0),
    ...(generation === undefined && { waitsUntil: Date.now() + server.limits.pushWaitMsMax }),
    bytes,
  };
  if (known === undefined) {
    await requireProgressRoom(server, taskId);
    await assertRoom(server, taskId, 1);
  }
  const countKey = webhookCountKey(context.caller, key, bytes);
  await server.quotas.addWebhook(context.caller, await usageOf(server, taskId, countKey, { bytes, bytesBefore }));
  // The webhook is counted before it is stored, because a webhook without a count would be worse than a count without a webhook, which a
  // retry replaces.
  await orFault(putWebhookCount(pushConfigs, countKey), taskId);
  const revision = await orFault(pushConfigs.put(key, entry), taskId);
  if (known !== undefined && bytesBefore !== bytes) await removeCount(server, known);
  if (known === undefined) await assertRoom(server, taskId, 0, { key, value: entry, revision });
  return entry;
}

/** The usage that a webhook adds to its owner's: none if an earlier try has already counted it. */
async function usageOf(
  server: A2AServer,
  taskId: string,
  countKey: string,
  { bytes, bytesBefore }: { bytes: number; bytesBefore?: number | undefined },
): Promise<WebhookUsage> {
  if (bytesBefore !== undefined) return { entries: 0, bytes: Math.max(0, bytes - bytesBefore) };
  const isCounted = (await orFault(server.log.pushConfigs.get(countKey), taskId)) !== undefined;
  return isCounted ? { entries: 0, bytes: 0 } : { entries: 1, bytes };
}

/** NATS users of an earlier version may not remove the entry, which then counts until it expires. */
async function removeCount({ log }: A2AServer, webhook: Entry<PushConfigEntry>): Promise<void> {
  await orFault(
    removeWebhookCount(log.pushConfigs, webhook).catch(error => {
      if (!(error instanceof LogDenied)) throw error;
    }),
    webhook.value.taskId,
  );
}

async function removeWebhook(server: A2AServer, webhook: Entry<PushConfigEntry>): Promise<void> {
  await removeCount(server, webhook);
  await orFault(server.log.pushConfigs.delete(webhook.key), webhook.value.taskId);
}

function requestedEntry({ caller, dialect }: OperationContext, taskId: string, config: NewPushConfig) {
  const owner = !isSameOwner(caller, undefined) && { owner: caller };
  return { ...config, taskId, id: config.id ?? taskId, dialect: dialect.name, ...owner };
}

/** Refuses a webhook for a task that is about to begin. */
export async function requirePushRoom(
  server: A2AServer,
  context: OperationContext,
  taskId: string,
  config: NewPushConfig,
): Promise<void> {
  const entry = { ...requestedEntry(context, taskId, config), after: 0 };
  const key = keyOf(taskId, entry.id);
  const bytes = webhookBytes(key, entry);
  await requireProgressRoom(server, taskId);
  const usage = await usageOf(server, taskId, webhookCountKey(context.caller, key, bytes), { bytes });
  await server.quotas.requireWebhookRoom(context.caller, usage);
}

/**
 * The entry to replace. Throws TASK_NOT_FOUND when it belongs to another owner, which can happen only before the task exists.
 */
async function entryAt(
  server: A2AServer,
  { caller }: OperationContext,
  target: PushTarget,
  key: string,
): Promise<Entry<PushConfigEntry> | undefined> {
  const known = await orFault(server.log.pushConfigs.get(key), target.taskId);
  if (known === undefined || isExpired(known.value, target.generation !== undefined)) return undefined;
  if (!isSameOwner(known.value.owner, caller)) throw new A2AError('TASK_NOT_FOUND');
  return known;
}

/** Share of the bucket of delivery progress up to which webhooks are accepted. The rest is for deliveries to existing webhooks. */
const NEW_WEBHOOKS_SHARE = 0.9;

/** Refuses a webhook whose deliveries could not be recorded. */
async function requireProgressRoom({ log }: A2AServer, taskId: string): Promise<void> {
  const { fill } = await orFault(log.pushProgress.extent(), taskId);
  if (fill >= NEW_WEBHOOKS_SHARE) throw new A2AError('UNAVAILABLE', { taskId });
}

/**
 * Throws if the limit is reached. Checked before storing, so that a refused request changes nothing, and again after storing a webhook, so
 * that concurrent requests cannot exceed the limit.
 */
async function assertRoom(server: A2AServer, taskId: string, more: 0 | 1, stored?: Entry<PushConfigEntry>): Promise<void> {
  if ((await orFault(server.log.pushConfigs.under(taskId), taskId)).length + more <= PUSH_CONFIGS_MAX) return;
  if (stored !== undefined) await removeWebhook(server, stored);
  const detail = `the task already has ${PUSH_CONFIGS_MAX} push configurations; delete one`;
  throw new A2AError('UNSUPPORTED_OPERATION', { detail, taskId });
}

/** Idempotent: deleting an absent configuration succeeds ([A2A 1.0] 3.1.10). */
export async function deletePushConfig(server: A2AServer, context: OperationContext, taskId: string, id: string): Promise<void> {
  const key = keyOf(taskId, id);
  const known = await orFault(server.log.pushConfigs.get(key), taskId);
  if (known !== undefined && isSameOwner(known.value.owner, context.caller)) await removeWebhook(server, known);
}

/**
 * Deletes configurations of other owners and expired ones before an id chosen by a client becomes a task, because they must not receive its
 * events.
 */
export async function dropStrayPushConfigs(server: A2AServer, context: OperationContext, taskId: string): Promise<void> {
  for (const webhook of await orFault(server.log.pushConfigs.under(taskId), taskId)) {
    const { value } = webhook;
    if (isExpired(value, false) || !isSameOwner(value.owner, context.caller)) await removeWebhook(server, webhook);
  }
}

async function orFault<T>(answer: Promise<T>, taskId: string): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    throw fromLog(thrown, taskId);
  }
}
