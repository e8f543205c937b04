import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal, type Message, type Metadata } from '@hopline/a2a';
import {
  type CallInput,
  type CallStarted,
  entryOf,
  type Fact,
  type Role,
  type TaskAggregate,
  type TraceCarrier,
  type Work,
  workingCall,
  workOfCall,
} from '@hopline/events';
import {
  type ListedTask,
  type Log,
  LogFull,
  newestForWork,
  type StoredFacts,
  startSeqOf,
  type TaskIndexEntry,
  type WorkQueue,
} from '@hopline/log';
import { rootProducer } from '@hopline/task';
import type { IndexWrites } from './index-writes.ts';
import type { PathMeasurement } from './path-measurement.ts';
import type { PipelineContext, StoredChange } from './pipeline-context.ts';
import type { ShownTasks } from './shown-tasks.ts';
import type { TurnWaits } from './turn-waits.ts';

/** Wait between two requests for work while the queue is full. */
const FULL_RETRY_MS = 1_000;
/** Bytes of records after which the index entry of a task is written again, so that the bytes of tenants can be added up from the index. */
export const INDEXED_BYTES_STEP = 1024 * 1024;

/** `queuedAt`: epoch milliseconds. */
type RequestOptions = { trace: TraceCarrier; queuedAt: number; isStopped: () => boolean };

/** A work item that follows from a message or a call. */
export type Item = {
  role: Role;
  id: string;
  work: Work;
  /** The producer whose inputs show that the item was taken by a worker. */
  producer: string;
  trace?: TraceCarrier;
};

export type SideEffectsOptions = {
  log: Pick<Log, 'work'>;
  index: IndexWrites;
  shown: ShownTasks;
  waits: TurnWaits;
  paths: PathMeasurement;
};

/**
 * Performs the effects of each stored step: a message becomes a work item for the task's role, a call becomes a work item for its agent,
 * and a change of state is written to the task index. All of these may happen more than once without harm, because work items are
 * deduplicated by id, and a worker reads the log before it starts.
 */
export function createSideEffects(options: SideEffectsOptions): PipelineContext['applySideEffects'] {
  const { waits, paths } = options;
  return (step, trace, isStopped) => {
    const applied = apply(options, step, { trace, queuedAt: Date.now(), isStopped });
    // Text of an artifact neither begins nor ends a turn.
    if (step.facts.every(({ kind }) => kind === 'artifact.updated')) return applied;
    waits.stored(step);
    paths.stored(step);
    return applied?.then(() => waits.queued(step));
  };
}

function apply(
  { log, index, shown }: SideEffectsOptions,
  step: StoredChange,
  options: RequestOptions,
): Promise<void> | undefined {
  const effects: Promise<unknown>[] = [];
  const { facts, aggregate, replay } = step;
  shown.stored(step);
  const items = facts.flatMap(fact => itemOf(fact, aggregate) ?? []);
  const newest = items.length === 0 ? {} : newestOf(step);
  for (const item of items)
    effects.push(request(log.work, { ...item, work: { queuedAt: options.queuedAt, ...item.work, ...newest } }, options));
  for (const item of itemsReadAgain(step)) effects.push(requestAgain(log.work, item, replay?.storedAt, options));
  const status = facts.findLast(fact => fact.kind === 'task.created' || fact.kind === 'status.changed');
  if (replay !== undefined || status !== undefined) {
    const entry = indexEntry(step, status?.at ?? aggregate.at);
    const put = (listed?: ListedTask) => index.put(aggregate.taskId, { ...entry, ...(listed && { listed }) });
    effects.push(isTerminal(aggregate.state) ? shown.ended(step, entry.at).then(put) : put());
  } else if (hasGrown(step)) {
    effects.push(index.put(aggregate.taskId, indexEntry(step, undefined)));
  }
  return effects.length === 0 ? undefined : Promise.all(effects).then(() => undefined);
}

/** The work item that follows from a fact. */
export function itemOf(fact: Fact, aggregate: TaskAggregate): Item | undefined {
  switch (fact.kind) {
    case 'task.created':
      return messageItem(aggregate, { turn: 1, message: fact.event.task.history!.at(-1)!, metadata: fact.request });
    case 'message.received':
      return messageItem(aggregate, { turn: fact.turn, message: fact.message, metadata: fact.request });
    case 'call.started': {
      const item = callItem(aggregate, fact);
      // The item counts as queued from the time at which its fact was stored, because the previous hop ends there, and the supervisor reads
      // that time.
      return item && { ...item, work: { ...item.work, queuedAt: fact.at } };
    }
    default:
      return undefined;
  }
}

/**
 * The items of inputs that are read again and whose workers have written nothing. Their requests may have been lost together with the
 * previous owner.
 */
function itemsReadAgain({ aggregate, replay }: StoredChange): Item[] {
  if (replay === undefined || isTerminal(aggregate.state)) return [];
  const { message, calls = [] } = replay;
  const isNewest = message !== undefined && aggregate.messageIds.at(-1) === message.message.messageId;
  const items = isNewest ? [messageItem(aggregate, { turn: aggregate.turn, ...message })] : [];
  items.push(...calls.flatMap(call => callItem(aggregate, call) ?? []));
  return items.filter(({ producer }) => entryOf(aggregate.producers, producer) === undefined);
}

function messageItem(
  aggregate: TaskAggregate,
  { turn, message, metadata }: { turn: number; message: Message; metadata?: Metadata | undefined },
): Item {
  const { taskId, contextId, profile, role, owner } = aggregate;
  const work: Work = { v: 1, taskId, contextId, turn, profile, message, ...(metadata && { metadata }), ...(owner && { owner }) };
  return { role, id: messageItemId(taskId, turn), work, producer: rootProducer(aggregate) };
}

export function messageItemId(taskId: string, turn: number): string {
  return `${taskId}:${turn}`;
}

/** Undefined for a call that is over, and for one whose work the supervisor queues. */
function callItem(aggregate: TaskAggregate, call: CallInput | CallStarted): Item | undefined {
  const working = workingCall(call);
  const known = entryOf(aggregate.calls, call.call);
  if (working === undefined || known === undefined || known.state !== undefined || isTerminal(aggregate.state)) return undefined;
  const id = `${aggregate.taskId}:${call.call}`;
  const { trace } = working;
  return { role: `agent.${known.agent}`, id, work: workOfCall(aggregate, working), producer: call.call, ...(trace && { trace }) };
}

/** Whether this record begins another INDEXED_BYTES_STEP. Every relay computes the same result, without remembering the last entry. */
function hasGrown({ aggregate, storedBytes }: StoredChange): boolean {
  const steps = (bytes: number) => Math.floor(bytes / INDEXED_BYTES_STEP);
  return steps(storedBytes) > steps(aggregate.storedBytes ?? 0);
}

/** The newest record of a task as a step, for its index entry. */
export function changeOf(newest: StoredFacts): Parameters<typeof indexEntry>[0] {
  const { seq, record } = newest;
  const { aggregate, startStoredAt } = record;
  return { aggregate, seq, startSeq: startSeqOf(newest), startStoredAt, storedBytes: aggregate.storedBytes ?? 0 };
}

/**
 * The index entry of a stored task. `at`: time of its newest change of state in epoch milliseconds; undefined: the time in its last entry.
 */
export function indexEntry<At extends number | undefined>(
  step: Pick<StoredChange, 'aggregate' | 'seq' | 'startSeq' | 'startStoredAt' | 'storedBytes'>,
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

function newestOf({ facts, aggregate, seq, startSeq, startStoredAt }: StoredChange): Pick<Work, 'newest'> {
  return newestForWork({ seq, record: { v: 1, facts: [...facts], aggregate, startSeq, startStoredAt } });
}

/**
 * Requests the item of an input that was read again. Within the duplicate window a repetition has no effect. After that, the first request
 * counts as lost only if the queue has no item of the task, because a worker that has been silent for that long still has its item.
 */
async function requestAgain(work: WorkQueue, item: Item, storedAt: number | undefined, options: RequestOptions): Promise<void> {
  const isForgotten = storedAt === undefined || options.queuedAt - storedAt >= work.duplicateWindowMs;
  if (isForgotten && (await work.hasItem(item.role, item.work.taskId))) return;
  await request(work, { ...item, work: { ...item.work, queuedAt: options.queuedAt } }, options);
}

async function request(queue: WorkQueue, { role, id, work, trace }: Item, options: RequestOptions): Promise<void> {
  // A full queue must not make the shard fail. The checkpoint waits, so a later owner of the shard also requests the work.
  for (;;) {
    try {
      await queue.request(role, work, { id, trace: trace ?? options.trace });
      return;
    } catch (error) {
      if (!(error instanceof LogFull)) throw error;
      await sleep(FULL_RETRY_MS, undefined, { ref: false });
      if (options.isStopped()) throw error;
    }
  }
}
