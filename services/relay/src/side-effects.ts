import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal, type Message, type Metadata } from '@hopline/a2a';
import type { TraceCarrier, Work } from '@hopline/events';
import { type Log, LogConflict, LogFull, LogUnavailable, newestForWork, type TaskIndexEntry } from '@hopline/log';
import { rootProducer } from '@hopline/task';
import type { StoredStep } from './pipeline-context.ts';

/** Tries of one index write. Each conflict is a write of another relay, and a task has two for the time of a takeover. */
export const INDEX_TRIES_MAX = 8;
/** Tasks whose own last index write is remembered, which saves the next write a read. */
const WRITTEN_MAX = 4_096;
/** Wait between two requests for work while the queue is full, milliseconds. */
const FULL_RETRY_MS = 1_000;

/**
 * Writes the task index, one write per task at a time, and each by the revision that it replaces: never over an entry of a later
 * record. A relay that lost the task may have a write in flight; an entry that is `working` for a task in input-required makes no
 * deadline.
 */
export class IndexWrites {
  readonly #tasks: Log['tasks'];
  readonly #newest = new Map<string, Promise<unknown>>();
  /** Revision and entry of this relay's last write of a task, oldest first. */
  readonly #written = new Map<string, Written>();

  constructor(tasks: Log['tasks']) {
    this.#tasks = tasks;
  }

  put(taskId: string, entry: TaskIndexEntry): Promise<unknown> {
    const put = () => this.#put(taskId, entry);
    const before = this.#newest.get(taskId);
    const write = before === undefined ? put() : before.then(put, put);
    this.#newest.set(taskId, write);
    const settled = () => {
      if (this.#newest.get(taskId) === write) this.#newest.delete(taskId);
    };
    write.then(settled, settled);
    return write;
  }

  async #put(taskId: string, entry: TaskIndexEntry): Promise<void> {
    let known: Written | undefined = this.#written.get(taskId);
    for (let tries = 0; tries < INDEX_TRIES_MAX; tries++) {
      const found = known ?? (await this.#tasks.get(taskId));
      known = undefined;
      if (found !== undefined && !replaces(entry, found.value)) return;
      try {
        const written =
          found === undefined ? this.#tasks.create(taskId, entry) : this.#tasks.update(taskId, entry, found.revision);
        this.#remember(taskId, { value: entry, revision: await written });
        return;
      } catch (error) {
        if (!(error instanceof LogConflict)) throw error;
      }
    }
    throw new LogUnavailable(`the index entry of a task changed during each of ${INDEX_TRIES_MAX} tries to write it`);
  }

  #remember(taskId: string, written: Written): void {
    this.#written.delete(taskId);
    if (!isTerminal(written.value.state)) this.#written.set(taskId, written);
    for (const oldest of this.#written.keys()) {
      if (this.#written.size <= WRITTEN_MAX) break;
      this.#written.delete(oldest);
    }
  }
}

type Written = { value: TaskIndexEntry; revision: number };

/** Whether an entry comes from a later record than the stored one; a copy-forward keeps the generation. */
function replaces(entry: TaskIndexEntry, stored: TaskIndexEntry): boolean {
  if (entry.generation !== stored.generation) return entry.generation > stored.generation;
  return (entry.startStoredAt ?? 0) > (stored.startStoredAt ?? 0);
}

/**
 * Follows a stored step: a message becomes a work item for the task's role, a change of state goes into the task index. Both
 * happen at least once: a work item has an id, and its worker reads the log before it starts. `queuedAt`: epoch milliseconds.
 */
export function applySideEffects(
  log: Pick<Log, 'work'>,
  index: IndexWrites,
  step: StoredStep,
  trace: TraceCarrier,
  queuedAt: number,
): Promise<void> | undefined {
  const effects: Promise<unknown>[] = [];
  const { facts, aggregate, replay } = step;
  const request = (turn: number, message: Message, metadata: Metadata | undefined) =>
    effects.push(requestWork(log, step, { turn, message, ...(metadata && { metadata }) }, { trace, queuedAt }));
  for (const fact of facts) {
    if (fact.kind === 'task.created') request(1, fact.event.task.history!.at(-1)!, fact.request);
    if (fact.kind === 'message.received') request(fact.turn, fact.message, fact.request);
  }
  const message = replay?.message;
  const isNewest = message !== undefined && aggregate.messageIds.at(-1) === message.message.messageId;
  // Queued once only within the duplicate window: once a worker has written, its item was delivered and needs no other.
  const isTaken = aggregate.producers[rootProducer(aggregate)] !== undefined;
  if (isNewest && !isTaken && !isTerminal(aggregate.state)) request(aggregate.turn, message.message, message.metadata);
  const status = facts.findLast(fact => fact.kind === 'task.created' || fact.kind === 'status.changed');
  if (replay !== undefined || status !== undefined) {
    effects.push(index.put(aggregate.taskId, indexEntry(step, status?.at ?? aggregate.at)));
  }
  return effects.length === 0 ? undefined : Promise.all(effects).then(() => undefined);
}

function indexEntry({ aggregate, startSeq, startStoredAt }: StoredStep, at: number): TaskIndexEntry {
  const { contextId, role, state, generation, owner } = aggregate;
  const entry: TaskIndexEntry = {
    contextId,
    role,
    state,
    startSeq,
    startStoredAt,
    generation,
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
  { trace, queuedAt }: { trace: TraceCarrier; queuedAt: number },
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
    }
  }
}
