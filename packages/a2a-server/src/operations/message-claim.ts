import { hash } from 'node:crypto';
import { A2AError, type Message } from '@hopline/a2a';
import type { Owner } from '@hopline/events';
import { chosenTaskKey, type KeyValue, LogConflict, type MessageIdEntry, messageIdKey } from '@hopline/log';

/** Number of attempts at a claim, because retention may remove the conflicting entry before it is read. */
const CLAIM_TRIES_MAX = 3;

/** The scope of a message id. Contexts of two owners are different even if their ids are equal. */
type MessageScope = { owner: Owner; contextId: string };

/**
 * Rejects if a message with a new id would be refused. The ids of all tenants share one bucket, which drops the oldest, so a message that
 * is refused must not add one.
 */
type RequireRoom = () => Promise<void>;

/**
 * Decides which task a message of a context belongs to. The first request with its id wins, whichever replica it reached. Returns the
 * winner's task id. Throws INVALID_PARAMS when the winner's content differs. `requireRoom`: for a message that may begin a task.
 */
export async function claimMessage(
  ids: KeyValue<MessageIdEntry>,
  { owner, contextId }: MessageScope,
  message: Message,
  taskId: string,
  requireRoom?: RequireRoom,
): Promise<string> {
  return claim(ids, claimKey({ owner, contextId }, message), { taskId, fingerprint: fingerprintOf(message) }, requireRoom);
}

/** Whether an earlier request with the message's id has claimed it. */
export async function isClaimed(ids: KeyValue<MessageIdEntry>, scope: MessageScope, message: Message): Promise<boolean> {
  return (await ids.get(claimKey(scope, message))) !== undefined;
}

function claimKey({ owner, contextId }: MessageScope, { messageId }: Message): string {
  return messageIdKey(owner, contextId, messageId);
}

/**
 * Claims a task id chosen by a client for one owner and first message, because the id is part of a subject. Throws
 * INVALID_PARAMS when another owner or another message has claimed it.
 */
export async function claimTask(
  ids: KeyValue<MessageIdEntry>,
  owner: Owner,
  message: Message,
  taskId: string,
  requireRoom: RequireRoom,
): Promise<void> {
  const fingerprint = hash('sha256', JSON.stringify([...ownerOf(owner), message.messageId, fingerprintOf(message)]));
  await claim(ids, chosenTaskKey(taskId), { taskId, fingerprint }, requireRoom);
}

function ownerOf({ tenant, subject }: Owner): (string | null)[] {
  return [tenant ?? null, subject ?? null];
}

/** A message that would be refused joins the task for which its id was claimed, because it may be a retry. */
async function claim(
  ids: KeyValue<MessageIdEntry>,
  key: string,
  { taskId, fingerprint }: MessageIdEntry,
  requireRoom: RequireRoom = async () => {},
): Promise<string> {
  const refusal = await requireRoom().then(
    () => undefined,
    (thrown: unknown) => ({ thrown }),
  );
  for (let tries = 1; tries <= CLAIM_TRIES_MAX; tries += 1) {
    if (refusal === undefined) {
      try {
        await ids.create(key, { taskId, fingerprint });
        return taskId;
      } catch (thrown) {
        if (!(thrown instanceof LogConflict)) throw thrown;
      }
    }
    const known = await ids.get(key);
    if (known === undefined && refusal !== undefined) throw refusal.thrown;
    if (known === undefined) continue;
    if (known.value.fingerprint === fingerprint) return known.value.taskId;
    throw reusedMessageId();
  }
  throw new A2AError('UNAVAILABLE');
}

export function reusedMessageId(): A2AError {
  return new A2AError('INVALID_PARAMS', {
    detail: 'message.messageId was already used in this context for another message; send a new id',
  });
}

/** A hash of only the content, so that a retry counts as the same message even in another dialect, or if it now names its task. */
export function fingerprintOf(message: Message): string {
  const { role, parts, metadata, extensions, referenceTaskIds } = message;
  return hash('sha256', JSON.stringify(sorted({ role, parts, metadata, extensions, referenceTaskIds })));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sorted(member)]));
}
