import { A2AError, type NewPushConfig, PUSH_CONFIGS_MAX, type PushConfig } from '@hopline/a2a';
import { isSameOwner } from '@hopline/events';
import type { PushConfigEntry } from '@hopline/log';
import type { Ask, Door } from '../door.ts';
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
export async function pushConfigsOf(door: Door, ask: Ask, { taskId, generation }: PushPlace): Promise<PushConfigEntry[]> {
  const entries = await fromTheLog(door.log.pushConfigs.under(taskId), taskId);
  const own = entries.map(entry => entry.value).filter(value => isSameOwner(value.owner, ask.caller));
  return own.filter(value => !isGone(value, generation !== undefined)).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The configuration of an id, or without one the only one: that of the task's own id, else the first. Throws TASK_NOT_FOUND ([A2A 1.0] 3.1.8). */
export async function pushConfigOf(door: Door, ask: Ask, place: PushPlace, id: string | undefined): Promise<PushConfigEntry> {
  const entries = await pushConfigsOf(door, ask, place);
  const found = entries.find(entry => entry.id === (id ?? place.taskId)) ?? (id === undefined ? entries[0] : undefined);
  if (found !== undefined) return found;
  throw new A2AError('TASK_NOT_FOUND', { detail: 'the task has no such push configuration', taskId: place.taskId });
}

/**
 * Stores a configuration; one of the same id is replaced. Without an id it gets its task's, as both official SDKs do it: so there is one of them, and a retry stores nothing twice.
 * Events after the task's generation are told; whoever was told before goes on where that ended. Throws UNSUPPORTED_OPERATION beyond PUSH_CONFIGS_MAX.
 */
export async function storePushConfig(door: Door, ask: Ask, place: PushPlace, config: NewPushConfig): Promise<PushConfig> {
  const { taskId, generation } = place;
  const { pushConfigs } = door.log;
  const id = config.id ?? taskId;
  const key = keyOf(taskId, id);
  const known = (await fromTheLog(pushConfigs.get(key), taskId))?.value;
  const stays = known !== undefined && !isGone(known, generation !== undefined);
  // Only before its task is there can an id have the configuration of somebody else.
  if (stays && !isSameOwner(known.owner, ask.caller)) throw new A2AError('TASK_NOT_FOUND');
  const after = generation ?? 0;
  const entry: PushConfigEntry = {
    ...config,
    taskId,
    id,
    dialect: ask.dialect.name,
    after: stays && known.url === config.url ? Math.min(known.after, after) : after,
    ...(!isSameOwner(ask.caller, undefined) && { owner: ask.caller }),
    ...(generation === undefined && { waitsUntil: Date.now() + door.limits.pushWaitMsMax }),
  };
  await fromTheLog(pushConfigs.put(key, entry), taskId);
  // Counted afterwards: of requests that race none gets past the bound.
  if (known === undefined && (await fromTheLog(pushConfigs.under(taskId), taskId)).length > PUSH_CONFIGS_MAX) {
    await fromTheLog(pushConfigs.delete(key), taskId);
    throw new A2AError('UNSUPPORTED_OPERATION', {
      detail: `the task has ${PUSH_CONFIGS_MAX} push configurations already`,
      taskId,
    });
  }
  return entry;
}

/** Nothing happens when there is none: deleting is idempotent ([A2A 1.0] 3.1.10). */
export async function deletePushConfig(door: Door, ask: Ask, taskId: string, id: string): Promise<void> {
  const key = keyOf(taskId, id);
  const known = await fromTheLog(door.log.pushConfigs.get(key), taskId);
  if (known !== undefined && isSameOwner(known.value.owner, ask.caller))
    await fromTheLog(door.log.pushConfigs.delete(key), taskId);
}

/** Before an owner's own id becomes a task: what others left there for it, and what has waited too long, must not be told about it. */
export async function dropStrayPushConfigs(door: Door, ask: Ask, taskId: string): Promise<void> {
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
