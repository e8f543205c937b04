import { type KeyValue, LogConflict, LogUnavailable, type TaskIndexEntry } from '@hopline/log';

/** Number of tries of one index write. Each conflict means that another relay has written, and a task has two relays during a takeover. */
export const INDEX_TRIES_MAX = 8;

/** A task that has not ended, and the revision of its entry in the task lists. */
export type OpenTask = { entry: TaskIndexEntry; revision: number };

/** An entry. Without `at`, the time of the previous entry is kept. */
export type IndexWrite = Omit<TaskIndexEntry, 'at'> & { at: number | undefined };
/**
 * Stores an entry unless a later one is stored. Resolves with the entry that is then stored, or with undefined if none had to be stored.
 * `known`: the entry as this process wrote it, or `absent` if it probably does not exist. That saves a read; an outdated value costs a
 * conflict. `isSettled`: called when no entry is stored. If it returns true, none is written.
 */
export async function storeEntry(
  bucket: KeyValue<TaskIndexEntry>,
  key: string,
  write: IndexWrite,
  known?: OpenTask | 'absent',
  isSettled: () => Promise<boolean> = async () => false,
): Promise<OpenTask | undefined> {
  let expected = known;
  for (let tries = 0; tries < INDEX_TRIES_MAX; tries++) {
    const found = expected === 'absent' ? undefined : (expected ?? (await read(bucket, key)));
    expected = undefined;
    if (found !== undefined && !replaces(write, found.entry)) return found;
    if (found === undefined && (await isSettled())) return undefined;
    const entry = { ...write, at: write.at ?? found?.entry.at ?? Date.now() };
    try {
      const revision = found === undefined ? await bucket.create(key, entry) : await bucket.update(key, entry, found.revision);
      return { entry, revision };
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
    }
  }
  throw new LogUnavailable(`the index entry of a task changed during each of ${INDEX_TRIES_MAX} tries to write it`);
}

async function read(bucket: KeyValue<TaskIndexEntry>, key: string): Promise<OpenTask | undefined> {
  const found = await bucket.get(key);
  return found && { entry: found.value, revision: found.revision };
}

/** Whether an entry comes from a later record than the stored one. A copy-forward keeps the generation. */
export function replaces(entry: IndexWrite, stored: IndexWrite): boolean {
  if (entry.generation !== stored.generation) return entry.generation > stored.generation;
  return (entry.startStoredAt ?? 0) > (stored.startStoredAt ?? 0);
}
