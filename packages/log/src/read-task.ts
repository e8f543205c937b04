import { type CopiedFacts, isVisible, type Producer, type TaskAggregate } from '@hopline/events';
import { NO_LONGER_NEEDED, Requeued, Superseded } from './errors.ts';
import type { FactLog, StoredFacts } from './fact-log.ts';
import type { Job } from './work-queue.ts';

/**
 * How long the log may take to show the turn of a stored work item, in milliseconds. This is longer than an election, and longer than a
 * relay takes to notice that the log has lost the task (5 s) and to fold its inputs again.
 */
const TURN_SHOWN_MS_MAX = 20_000;

/**
 * Log sequence of the record with which the task begins, as `stored` names it. Use the newest record, because only that one names the
 * current start.
 */
export function startSeqOf({ seq, record }: StoredFacts): number {
  return record.startSeq || seq;
}

/**
 * The newest record of a task once the log shows the turn of the work item. Waiting is necessary in two cases. A stale read shows the
 * previous turn, whose end would settle the item without a run. And if the log has lost the task, all attempts of the item would end before
 * a relay stores it again. Rejects when the item must be delivered again: with Requeued when `signal` aborts, and with an error when the
 * log does not show the turn in time.
 */
export async function newestOfTurn(
  facts: FactLog,
  { work: { taskId, turn }, newest: known }: Pick<Job, 'work' | 'newest'>,
  signal: AbortSignal,
  waitMs = TURN_SHOWN_MS_MAX,
): Promise<StoredFacts> {
  const newest = known ?? (await facts.last(taskId));
  if (newest !== undefined && newest.record.aggregate.turn >= turn) return newest;
  const ended = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
  for await (const stored of await facts.follow(taskId, newest?.seq ?? 0, ended)) {
    if (stored.record.aggregate.turn >= turn) return stored;
  }
  if (signal.aborted) throw new Requeued('shutdown');
  throw new Error(`the log does not contain the ${newest === undefined ? 'task' : 'turn'} of this work item`);
}

/** Reads all stored records of the task with the given newest record, each fact once. */
export function readTask(facts: Pick<FactLog, 'read'>, newest: StoredFacts): AsyncIterable<StoredFacts> {
  if (isWhole(newest)) return fromStart([newest]);
  const { taskId, owner } = newest.record.aggregate;
  return fromStart(facts.read(taskId, startSeqOf(newest), owner, newest.seq));
}

/** Reads like `readTask`, then follows the task until `signal` aborts. */
export async function followTask(facts: FactLog, newest: StoredFacts, signal: AbortSignal): Promise<AsyncIterable<StoredFacts>> {
  if (isWhole(newest)) return fromStart(followFrom(facts, newest, signal));
  return fromStart(
    await facts.follow(newest.record.aggregate.taskId, startSeqOf(newest) - 1, signal, newest.record.aggregate.owner),
  );
}

/**
 * Throws Superseded if a newer attempt of a producer has written. The relay rejects the inputs of a superseded attempt. If the newer
 * attempt has died, this worker must not keep the item, because the next attempt needs it.
 */
export function requireNewest({ producers }: TaskAggregate, { id, attempt }: Pick<Producer, 'id' | 'attempt'>): void {
  if ((producers[id]?.attempt ?? 0) > attempt) throw new Superseded();
}

/** Whether a record is the whole task, as for a new task, so that reading the log would find nothing else. */
function isWhole(newest: StoredFacts): boolean {
  return startSeqOf(newest) === newest.seq;
}

/**
 * Yields `newest`, then the records after it. The follower subscribes while the reader works on `newest`. So the first work of a task need
 * not wait for a request, and the records that result from this work arrive live.
 */
async function* followFrom(facts: FactLog, newest: StoredFacts, signal: AbortSignal): AsyncGenerator<StoredFacts, void> {
  const left = new AbortController();
  const ended = AbortSignal.any([signal, left.signal]);
  const following = facts
    .follow(newest.record.aggregate.taskId, { newest: newest.seq, id: newest.id }, ended)
    .then(all => all[Symbol.asyncIterator]());
  const second = following.then(records => records.next());
  second.catch(() => {});
  try {
    yield newest;
    const records = await following;
    for (let next = await second; next.done !== true; next = await records.next()) yield next.value;
  } finally {
    left.abort(NO_LONGER_NEEDED);
  }
}

/**
 * Makes facts that were copied forward (PROTOCOL.md 4.3) look as if they were stored for the first time. The records of a task
 * are read in two phases:
 * - the copied run: the parts at the beginning of the read, up to the last part. Each one yields its copied facts as its own facts.
 * - plain records: everything after it. Later copies repeat facts that were already yielded, so they are passed on with empty `facts`.
 *
 * A read that begins with a plain record has no copied run. A plain record within the run ends it: the relay died before
 * the last part, so no `startSeq` names the parts that it left.
 */
export async function* fromStart(records: AsyncIterable<StoredFacts> | Iterable<StoredFacts>): AsyncGenerator<StoredFacts, void> {
  let phase: 'copied run' | 'plain records' = 'copied run';
  let generation = 0;
  for await (const stored of records) {
    const { copied } = stored.record;
    if (phase === 'plain records' || copied === undefined) {
      phase = 'plain records';
      yield stored;
      continue;
    }
    generation = copied.facts.findLast(isVisible)?.generation ?? generation;
    yield expand(stored, copied, generation);
    if (copied.last) phase = 'plain records';
  }
}

/**
 * Every copied part is stored with the aggregate after the newest fact, but only the last part is yielded with it, because a reader that
 * waits for a generation or a raw sequence must first have received the facts up to that point.
 */
function expand(stored: StoredFacts, { facts, last }: CopiedFacts, generation: number): StoredFacts {
  const { copied: _copied, ...record } = stored.record;
  const aggregate = last ? record.aggregate : { ...record.aggregate, generation, foldedSeq: 0 };
  return { ...stored, record: { ...record, facts, aggregate } };
}
