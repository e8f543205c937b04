import type { TaskAggregate } from '@hopline/events';
import { type Log, readTask, type StoredFacts, type StoredInput, startSeqOf } from '@hopline/log';
import {
  type FactsEntry,
  type InputEntry,
  inOrderOfTime,
  type RecordEntry,
  type RecordKind,
  TASK_FORMAT,
  TASK_FORMAT_VERSION,
  type TaskHeader,
  type TaskProgress,
} from '@hopline/task-file';

/** A task at the time at which its export begins. Later records are not part of it. */
export type TaskExport = {
  header: TaskHeader;
  outcome: Pick<TaskAggregate, 'generation' | 'state'>;
  /** The records after `after`, or all of them; read as they are consumed. */
  records(after?: TaskProgress): AsyncIterable<RecordEntry>;
};

export type ExportOptions = {
  /** Version of Hopline, for the header. */
  hopline: string;
  contains: readonly RecordKind[];
  /** Epoch milliseconds. */
  now: number;
};

/** Resolves with undefined for an unknown task. Reads one record of each kind ahead. */
export async function exportTask(
  log: Pick<Log, 'inputs' | 'facts'>,
  taskId: string,
  { hopline, contains, now }: ExportOptions,
): Promise<TaskExport | undefined> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) return undefined;
  const { aggregate } = newest.record;
  const { contextId, role, profile, owner, generation, state } = aggregate;
  const partial = await partialOf(log, newest, contains);
  const header: TaskHeader = {
    format: TASK_FORMAT,
    version: TASK_FORMAT_VERSION,
    hopline,
    exportedAt: now,
    taskId,
    contextId,
    role,
    profile,
    ...(owner && { owner }),
    agents: agentsOf(aggregate),
    contains: [...contains],
    ...(partial.length > 0 && { partial }),
  };
  const records = (after?: TaskProgress) => {
    const inputs = contains.includes('inputs') ? inputEntries(log.inputs.read(taskId), after?.lastInputSeq) : nothing();
    const facts = contains.includes('facts') ? factsEntries(factsAfter(log, newest, after), after?.lastFactsSeq) : nothing();
    return inOrderOfTime(inputs, facts);
  };
  return { header, outcome: { generation, state }, records };
}

/**
 * The records of facts from which an export takes those after `after`. A copy that was stored since the export was cut repeats facts that are in the
 * file, so it must not be the beginning.
 */
function factsAfter(
  { facts }: Pick<Log, 'facts'>,
  newest: StoredFacts,
  after: TaskProgress | undefined,
): AsyncIterable<StoredFacts> {
  const lastFactsSeq = after?.lastFactsSeq ?? 0;
  if (lastFactsSeq === 0 || startSeqOf(newest) <= lastFactsSeq) return readTask(facts, newest);
  const { taskId, owner } = newest.record.aggregate;
  return facts.read(taskId, lastFactsSeq + 1, owner, newest.seq);
}

async function* nothing(): AsyncGenerator<never, void> {}

/**
 * The kinds of records whose beginning is missing. Retention removes the oldest records first, so a task whose first record does not begin
 * it has lost its beginning.
 */
async function partialOf(
  { inputs, facts }: Pick<Log, 'inputs' | 'facts'>,
  newest: StoredFacts,
  contains: readonly RecordKind[],
): Promise<RecordKind[]> {
  const { taskId } = newest.record.aggregate;
  const input = contains.includes('inputs') ? await firstOf(inputs.read(taskId)) : undefined;
  const hasInputs = input?.record.from === 'client' && input.record.input.kind === 'message' && !input.record.input.continues;
  const fact = contains.includes('facts') ? (await firstOf(readTask(facts, newest)))?.record.facts[0] : undefined;
  return contains.filter(kind => (kind === 'inputs' ? !hasInputs : fact?.kind !== 'task.created'));
}

async function firstOf<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item;
  return undefined;
}

/** Producers of the current turn, and the agent that was addressed directly. */
function agentsOf({ role, calls }: TaskAggregate): string[] {
  const direct = role === 'supervisor' ? [] : [role.slice('agent.'.length)];
  return [...new Set([...direct, ...Object.values(calls).map(({ agent }) => agent)])];
}

async function* inputEntries(inputs: AsyncIterable<StoredInput>, after = 0): AsyncGenerator<InputEntry, void> {
  for await (const { seq, storedAt, writer, record, trace } of inputs) {
    if (seq > after) yield { kind: 'input', seq, storedAt, writer, record, ...(trace && { trace }) };
  }
}

async function* factsEntries(stored: AsyncIterable<StoredFacts>, after = 0): AsyncGenerator<FactsEntry, void> {
  for await (const { seq, storedAt, record, trace } of stored) {
    if (seq <= after) continue;
    // A later copy repeats facts that are already in the export, so its record is written without them.
    const { copied: _copied, ...uncopied } = record;
    const { generation, at } = uncopied.aggregate;
    // If the newest record was read by itself, it has no storage time. The time of its facts is used instead.
    yield { kind: 'facts', seq, storedAt: storedAt ?? at, generation, record: uncopied, ...(trace && { trace }) };
  }
}
