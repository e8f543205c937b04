import { isTerminal, type Message } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import {
  chosenTaskKey,
  type ErasedRecords,
  type Log,
  LogConflict,
  LogDenied,
  LogUnavailable,
  listKeyOf,
  listPrefixOf,
  messageIdKey,
  readTask,
  removeEnded,
  removeWebhookCount,
  type StoredFacts,
  sleepUnlessAborted,
  type TaskIndexEntry,
} from '@hopline/log';

/** Longer than a relay takes to move an ended task into the list of its owner. */
const LISTED_MS_MAX = 60_000;
const LISTED_POLL_MS = 500;
/** Tries of one write of a list, each after a write of a relay. */
const WRITE_TRIES_MAX = 8;

/** Numbers of what was removed. */
export type ErasedTask = ErasedRecords & { indexEntries: number; listRows: number; messageIds: number; webhooks: number };

/** The task cannot be erased now. One sentence. */
export class EraseRefused extends Error {
  override readonly name = 'EraseRefused';
}

/** The user of NATS may not remove records. One sentence. */
export class EraseDenied extends Error {
  override readonly name = 'EraseDenied';
}

type ErasableLog = Omit<Log, 'work' | 'wakeUps' | 'presence' | 'leases' | 'agents'>;

/**
 * Removes everything that the log stores of an ended task. The facts are last, because they name its owner and its messages: so a repetition completes what
 * an interruption left. Throws EraseRefused and EraseDenied; rejects with LogUnavailable.
 */
export async function eraseTask(
  log: ErasableLog,
  taskId: string,
  { signal, listedMsMax = LISTED_MS_MAX }: { signal: AbortSignal; listedMsMax?: number },
): Promise<ErasedTask> {
  try {
    return await removeTask(log, taskId, { signal, listedMsMax });
  } catch (error) {
    if (!(error instanceof LogDenied)) throw error;
    throw new EraseDenied(`task ${taskId} is not removed: ${error.message}, or repeat the command as the user admin`, {
      cause: error,
    });
  }
}

async function removeTask(
  log: ErasableLog,
  taskId: string,
  { signal, listedMsMax }: { signal: AbortSignal; listedMsMax: number },
): Promise<ErasedTask> {
  const [newest, indexed] = await Promise.all([log.facts.last(taskId), log.tasks.get(taskId)]);
  const state = (newest?.record.aggregate ?? indexed?.value)?.state;
  if (state === undefined ? await hasMessage(log, taskId) : !isTerminal(state))
    throw new EraseRefused(`task ${taskId} has not ended: end it with \`hopline cancel ${taskId}\`, then repeat the command`);
  const task = newest?.record.aggregate ?? indexed?.value;
  if (task !== undefined) await awaitListed(log, listKeyOf(taskId, task, log.layouts), { signal, listedMsMax });
  const webhooks = await removeWebhooks(log, taskId);
  const messageIds = await removeMessageIds(log, taskId, newest);
  if (indexed !== undefined) await log.tasks.purge(taskId, indexed.revision);
  const listRows = task === undefined ? 0 : await removeRow(log, taskId, task);
  const records = await log.purgeTask(taskId);
  return { ...records, indexEntries: indexed === undefined ? 0 : 1, listRows, messageIds, webhooks };
}

/** Whether a client's message waits for its relay. Inputs that a worker appended after the task was erased are not one. */
async function hasMessage({ inputs }: ErasableLog, taskId: string): Promise<boolean> {
  for await (const { record } of inputs.read(taskId))
    if (record.from === 'client' && record.input.kind === 'message') return true;
  return false;
}

/** Waits until no relay is about to add the task to the list of its owner. */
async function awaitListed(
  { taskLists }: ErasableLog,
  key: string,
  { signal, listedMsMax }: { signal: AbortSignal; listedMsMax: number },
): Promise<void> {
  const deadline = performance.now() + listedMsMax;
  while ((await taskLists.get(key)) !== undefined) {
    signal.throwIfAborted();
    if (performance.now() >= deadline)
      throw new EraseRefused(
        'the task is not in the list of its owner yet: a relay moves it there within a minute after its end, and within 10 minutes after an import; repeat the command then',
      );
    await sleepUnlessAborted(LISTED_POLL_MS, signal);
  }
}

async function removeWebhooks({ pushConfigs, pushProgress }: ErasableLog, taskId: string): Promise<number> {
  const configs = await pushConfigs.under(taskId);
  for (const config of configs) {
    await removeWebhookCount(pushConfigs, config);
    // Not purged: notifiers learn of the removal from its marker.
    await pushConfigs.delete(config.key);
  }
  for (const { key, revision } of await pushProgress.under(taskId)) await pushProgress.purge(key, revision);
  return configs.length;
}

async function removeMessageIds({ facts, messageIds }: ErasableLog, taskId: string, newest?: StoredFacts): Promise<number> {
  const keys = new Set([chosenTaskKey(taskId)]);
  if (newest !== undefined) {
    const { owner, contextId } = newest.record.aggregate;
    for await (const { record } of readTask(facts, newest))
      for (const { messageId } of record.facts.flatMap(messagesOf)) keys.add(messageIdKey(owner, contextId, messageId));
  }
  let removed = 0;
  for (const key of keys) {
    const found = await messageIds.get(key);
    if (found?.value.taskId !== taskId) continue;
    await messageIds.purge(key, found.revision);
    removed += 1;
  }
  return removed;
}

function messagesOf(fact: Fact): readonly Message[] {
  if (fact.kind === 'task.created') return fact.event.task.history ?? [];
  return fact.kind === 'message.received' ? [fact.message] : [];
}

async function removeRow(
  { taskLists, layouts }: ErasableLog,
  taskId: string,
  task: Pick<TaskIndexEntry, 'role' | 'owner'>,
): Promise<number> {
  const prefix = listPrefixOf(taskId, task, layouts);
  for (let tries = 1; ; tries += 1) {
    try {
      return await removeEnded(taskLists, prefix, { isGone: ([id]) => id === taskId, mayBeIn: () => true });
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
      if (tries >= WRITE_TRIES_MAX) throw new LogUnavailable('the list of the owner changed during each try to write it');
    }
  }
}
