import { isDeepStrictEqual } from 'node:util';
import { A2AError, type NewPushConfig, PUSH_CONFIGS_MAX, type PushConfig } from '@hopline/a2a';
import { isSameOwner } from '@hopline/events';
import type { PushConfigEntry } from '@hopline/log';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { fromLog } from '../log-faults.ts';

/** The webhooks of tasks in the log. An entry of somebody else is no entry. */

/** base64url has no dot, so everything before the dot is the task. */
function keyOf(taskId: string, id: string): string {
  return `${taskId}.${Buffer.from(id).toString('base64url')}`;
}

/** An entry that waits for a task which nobody began is none any more after a while (S3-23); one that has met its task waits no more. */
function isGone({ waitsUntil }: PushConfigEntry, taskExists: boolean): boolean {
  return !taskExists && waitsUntil !== undefined && waitsUntil <= Date.now();
}

export type PushPlace = {
  taskId: string;
  /** Generation of the task; undefined: no task has the id yet. */
  generation: number | undefined;
};

/** The configurations of a task that its owner may see, in the order of their ids. */
export async function pushConfigsOf(
  door: A2AServer,
  ask: OperationContext,
  { taskId, generation }: PushPlace,
): Promise<PushConfigEntry[]> {
  const entries = await fromTheLog(door.log.pushConfigs.under(taskId), taskId);
  const own = entries.map(entry => entry.value).filter(value => isSameOwner(value.owner, ask.caller));
  return own.filter(value => !isGone(value, generation !== undefined)).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The configuration of an id, or without one the only one: that of the task's own id, else the first. Throws TASK_NOT_FOUND ([A2A 1.0] 3.1.8). */
export async function pushConfigOf(
  door: A2AServer,
  ask: OperationContext,
  place: PushPlace,
  id: string | undefined,
): Promise<PushConfigEntry> {
  const entries = await pushConfigsOf(door, ask, place);
  const found = entries.find(entry => entry.id === (id ?? place.taskId)) ?? (id === undefined ? entries[0] : undefined);
  if (found !== undefined) return found;
  throw new A2AError('TASK_NOT_FOUND', { detail: 'the task has no such push configuration', taskId: place.taskId });
}

/**
 * Stores a configuration; one of the same id is replaced, and one that is the same is left alone. Without an id it gets its task's, as both official SDKs do it: so there is one of them, and
 * a retry stores nothing twice. Events after the task's generation are told. Throws UNSUPPORTED_OPERATION beyond PUSH_CONFIGS_MAX.
 */
export async function storePushConfig(
  door: A2AServer,
  ask: OperationContext,
  place: PushPlace,
  config: NewPushConfig,
): Promise<PushConfig> {
  const { taskId, generation } = place;
  const id = config.id ?? taskId;
  const key = keyOf(taskId, id);
  const known = await knownAt(door, ask, place, key);
  const { waitsUntil, after, ...before } = known ?? {};
  const asked = {
    ...config,
    taskId,
    id,
    dialect: ask.dialect.name,
    ...(!isSameOwner(ask.caller, undefined) && { owner: ask.caller }),
  };
  const told = known === undefined ? undefined : (await fromTheLog(door.log.pushProgress.get(key), taskId))?.value;
  if (waitsUntil === undefined && told?.over !== 'abandoned' && isDeepStrictEqual(before, asked)) return asked;
  const goesOn = known?.url === config.url && after !== undefined;
  const entry: PushConfigEntry = {
    ...asked,
    // The same webhook, with another token or given up before, goes on where telling it ended; another one begins now.
    after: goesOn ? Math.max(after, told?.generation ?? 0) : (generation ?? 0),
    ...(generation === undefined && { waitsUntil: Date.now() + door.limits.pushWaitMsMax }),
  };
  if (known === undefined) await requireRoom(door, taskId, 1);
  await fromTheLog(door.log.pushConfigs.put(key, entry), taskId);
  if (known === undefined) await requireRoom(door, taskId, 0, key);
  return entry;
}

/** The entry that is to be replaced. Throws TASK_NOT_FOUND when it is somebody else's, which it can be only before there is a task. */
async function knownAt(
  door: A2AServer,
  { caller }: OperationContext,
  place: PushPlace,
  key: string,
): Promise<PushConfigEntry | undefined> {
  const known = (await fromTheLog(door.log.pushConfigs.get(key), place.taskId))?.value;
  if (known === undefined || isGone(known, place.generation !== undefined)) return undefined;
  if (!isSameOwner(known.owner, caller)) throw new A2AError('TASK_NOT_FOUND');
  return known;
}

/** Counted before, so that what is refused changes nothing, and again when it was stored under `key`: of requests that race none gets past the bound. */
async function requireRoom(door: A2AServer, taskId: string, more: 0 | 1, key?: string): Promise<void> {
  const { pushConfigs } = door.log;
  if ((await fromTheLog(pushConfigs.under(taskId), taskId)).length + more <= PUSH_CONFIGS_MAX) return;
  if (key !== undefined) await fromTheLog(pushConfigs.delete(key), taskId);
  const detail = `the task has ${PUSH_CONFIGS_MAX} push configurations already`;
  throw new A2AError('UNSUPPORTED_OPERATION', { detail, taskId });
}

/** Nothing happens when there is none: deleting is idempotent ([A2A 1.0] 3.1.10). */
export async function deletePushConfig(door: A2AServer, ask: OperationContext, taskId: string, id: string): Promise<void> {
  const key = keyOf(taskId, id);
  const known = await fromTheLog(door.log.pushConfigs.get(key), taskId);
  if (known !== undefined && isSameOwner(known.value.owner, ask.caller))
    await fromTheLog(door.log.pushConfigs.delete(key), taskId);
}

/** Before an owner's own id becomes a task: what others left there for it, and what has waited too long, must not be told about it. */
export async function dropStrayPushConfigs(door: A2AServer, ask: OperationContext, taskId: string): Promise<void> {
  const { pushConfigs } = door.log;
  for (const { key, value } of await fromTheLog(pushConfigs.under(taskId), taskId)) {
    if (isGone(value, false) || !isSameOwner(value.owner, ask.caller)) await fromTheLog(pushConfigs.delete(key), taskId);
  }
}

async function fromTheLog<T>(answer: Promise<T>, taskId: string): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    throw fromLog(thrown, taskId);
  }
}
