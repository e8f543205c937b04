import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal, type Message, type Metadata } from '@hopline/a2a';
import type { TraceCarrier, Work } from '@hopline/events';
import { type Log, LogFull, newestForWork, type TaskIndexEntry } from '@hopline/log';
import { rootProducer } from '@hopline/task';
import type { IndexWrites } from './index-writes.ts';
import type { StoredStep } from './pipeline-context.ts';

/** Wait between two requests for work while the queue is full. */
const FULL_RETRY_MS = 1_000;
/** Bytes of records after which the index entry of a task is written again, so that servers can add up the bytes of tenants. */
export const INDEXED_BYTES_STEP = 1024 * 1024;

/** `queuedAt`: epoch milliseconds. */
type RequestOptions = { trace: TraceCarrier; queuedAt: number; isStopped: () => boolean };

/**
 * Follows a stored step: a message becomes a work item for the task's role, a change of state goes into the task index. Both
 * happen at least once: a work item has an id, and its worker reads the log before it starts.
 */
export function applySideEffects(
  log: Pick<Log, 'work'>,
  index: IndexWrites,
  step: StoredStep,
  options: RequestOptions,
): Promise<void> | undefined {
  const effects: Promise<unknown>[] = [];
  const { facts, aggregate, replay } = step;
  const request = (turn: number, message: Message, metadata: Metadata | undefined) =>
    effects.push(requestWork(log, step, { turn, message, ...(metadata && { metadata }) }, options));
  for (const fact of facts) {
    if (fact.kind === 'task.created') request(1, fact.event.task.history!.at(-1)!, fact.request);
    if (fact.kind === 'message.received') request(fact.turn, fact.message, fact.request);
  }
  const message = replay?.message;
  const isNewest = message !== undefined && aggregate.messageIds.at(-1) === message.message.messageId;
  // The duplicate window alone prevents a second item. Once a worker has written, its item was delivered and needs no repetition.
  const isTaken = aggregate.producers[rootProducer(aggregate)] !== undefined;
  if (isNewest && !isTaken && !isTerminal(aggregate.state)) request(aggregate.turn, message.message, message.metadata);
  const status = facts.findLast(fact => fact.kind === 'task.created' || fact.kind === 'status.changed');
  if (replay !== undefined || status !== undefined) {
    effects.push(index.put(aggregate.taskId, indexEntry(step, status?.at ?? aggregate.at)));
  } else if (hasGrown(step)) {
    effects.push(index.put(aggregate.taskId, indexEntry(step, undefined)));
  }
  return effects.length === 0 ? undefined : Promise.all(effects).then(() => undefined);
}

/** Whether this record begins another INDEXED_BYTES_STEP: the same for every relay, without a note of the last entry. */
function hasGrown({ aggregate, storedBytes }: StoredStep): boolean {
  const steps = (bytes: number) => Math.floor(bytes / INDEXED_BYTES_STEP);
  return steps(storedBytes) > steps(aggregate.storedBytes ?? 0);
}

/** The index entry of a stored task. `at`: time of its newest change of state, epoch milliseconds; undefined: as in its last entry. */
export function indexEntry<At extends number | undefined>(
  step: Pick<StoredStep, 'aggregate' | 'seq' | 'startSeq' | 'startStoredAt' | 'storedBytes'>,
  at: At,
): Omit<TaskIndexEntry, 'at'> & { at: At } {
  const { aggregate, seq, startSeq, startStoredAt, storedBytes } = step;
  const { contextId, role, state, generation, foldedSeq, owner } = aggregate;
  const entry = {
    contextId,
    role,
    state,
    startSeq,
    startStoredAt,
    generation,
    foldedSeq,
    seq,
    storedBytes,
    at,
    ...(owner && { owner }),
  };
  const inputRequest = state === 'TASK_STATE_INPUT_REQUIRED' ? aggregate.inputRequest : undefined;
  const authRequest = state === 'TASK_STATE_AUTH_REQUIRED' ? aggregate.authRequest : undefined;
  return { ...entry, ...(inputRequest && { inputRequest }), ...(authRequest && { authRequest }) };
}

async function requestWork(
  log: Pick<Log, 'work'>,
  { facts, aggregate, seq, startSeq, startStoredAt }: StoredStep,
  request: Pick<Work, 'turn' | 'message' | 'metadata'>,
  { trace, queuedAt, isStopped }: RequestOptions,
): Promise<void> {
  const { taskId, contextId, profile, role, owner } = aggregate;
  const { turn } = request;
  const record = { v: 1 as const, facts: [...facts], aggregate, startSeq, startStoredAt };
  const newest = facts.length === 0 ? {} : newestForWork({ seq, record });
  const work: Work = { v: 1, taskId, contextId, profile, ...request, ...(owner && { owner }), ...newest, queuedAt };
  // A full queue must not fail the shard. The checkpoint waits, so a later owner of the shard requests the work too.
  for (;;) {
    try {
      return await log.work.request(role, work, { id: `${taskId}:${turn}`, trace });
    } catch (error) {
      if (!(error instanceof LogFull)) throw error;
      await sleep(FULL_RETRY_MS, undefined, { ref: false });
      if (isStopped()) throw error;
    }
  }
}
