import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal, type Message, type Metadata } from '@hopline/a2a';
import type { TaskAggregate, TraceCarrier, Work } from '@hopline/events';
import { type Log, LogFull, type TaskIndexEntry } from '@hopline/log';
import type { StoredStep } from './pipeline-context.ts';

/** Wait between two requests for work while the queue is full, milliseconds. */
const FULL_RETRY_MS = 1_000;

/**
 * Writes the task index, one write per task at a time. Of two writes in flight the older one may be retried (an election takes
 * seconds, a turn less) and stored last; an entry that is `working` for a task in input-required makes no deadline.
 */
export class IndexWrites {
  readonly #tasks: Log['tasks'];
  readonly #newest = new Map<string, Promise<unknown>>();

  constructor(tasks: Log['tasks']) {
    this.#tasks = tasks;
  }

  put(taskId: string, entry: TaskIndexEntry): Promise<unknown> {
    const put = () => this.#tasks.put(taskId, entry);
    const before = this.#newest.get(taskId);
    const write = before === undefined ? put() : before.then(put, put);
    this.#newest.set(taskId, write);
    const settled = () => {
      if (this.#newest.get(taskId) === write) this.#newest.delete(taskId);
    };
    write.then(settled, settled);
    return write;
  }
}

/**
 * Follows a stored step: a message becomes a work item for the task's role, a change of state goes into the task index. Both
 * happen at least once: a work item has an id, and its worker reads the log before it starts.
 */
export function applySideEffects(
  log: Pick<Log, 'work'>,
  index: IndexWrites,
  step: StoredStep,
  trace: TraceCarrier,
): Promise<void> | undefined {
  const effects: Promise<unknown>[] = [];
  const { facts, aggregate, replay } = step;
  for (const fact of facts) {
    if (fact.kind === 'task.created')
      effects.push(requestWork(log, aggregate, 1, fact.event.task.history!.at(-1)!, fact.request, trace));
    if (fact.kind === 'message.received') effects.push(requestWork(log, aggregate, fact.turn, fact.message, fact.request, trace));
  }
  const message = replay?.message;
  const isNewest = message !== undefined && aggregate.messageIds.at(-1) === message.message.messageId;
  if (isNewest && !isTerminal(aggregate.state))
    effects.push(requestWork(log, aggregate, aggregate.turn, message.message, message.metadata, trace));
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
  aggregate: TaskAggregate,
  turn: number,
  message: Message,
  metadata: Metadata | undefined,
  trace: TraceCarrier,
): Promise<void> {
  const { taskId, contextId, profile, role, owner } = aggregate;
  const work: Work = { v: 1, taskId, contextId, turn, profile, message, ...(owner && { owner }), ...(metadata && { metadata }) };
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
