import { stateWord } from '@hopline/a2a';
import {
  type AgentInput,
  type ArtifactUpdated,
  type Cursor,
  formatCursor,
  isVisible,
  type Takeover,
  type VisibleFact,
  type Writer,
} from '@hopline/events';
import type { Log, StoredFacts, StoredInput } from '@hopline/log';
import { type ReadLimits, readTaskRecords, type TaskRecords } from './task-records.ts';
import { startOf, type TracedChunk, type VisibleEvent, visibleEventsOf } from './trace.ts';

/** Most records that an explanation lists. Only the first ones are listed, because a chunk after a long takeover has thousands. */
export const EXPLAINED_INPUTS_MAX = 50;

/** A stored input record. Times are milliseconds after the task's first input. */
export type ExplainedInput = {
  /** Raw sequence. */
  seq: number;
  writer: Writer;
  kinds: string[];
  /** Tokens in the record; a chunk may end within it. */
  tokens: number;
  atMs: number;
  storedMs: number;
};

/** Origin of one event of a task, in numbers and names, never text. */
export type EventExplanation = Omit<VisibleEvent, 'agent' | 'turn' | 'producer' | 'attempt' | 'chunk'> & {
  taskId: string;
  cursor: string;
  startedAt: number;
  kind: 'task' | 'status' | 'artifact';
  /** The relay that folded the event, and whether it had just taken over the task. */
  relay?: string;
  takeover?: { atMs: number; cause: Takeover['cause'] };
  producer?: { id: string; agent: string; turn: number; attempt: number };
  chunk?: TracedChunk;
  /**
   * The records from which the event was made, at most EXPLAINED_INPUTS_MAX. Empty if the relay decided the event by itself, or if
   * retention removed the records.
   */
  inputs: ExplainedInput[];
  inputCount: number;
  /** Events that were stored together with this one, in the same record. */
  storedWith: number[];
};

/** Resolves with undefined for an unknown task or generation. Throws TaskTooLong. */
export async function explainEvent(
  log: Pick<Log, 'inputs' | 'facts'>,
  taskId: string,
  { generation }: Pick<Cursor, 'generation'>,
  limits?: ReadLimits,
): Promise<EventExplanation | undefined> {
  const records = await readTaskRecords(log, taskId, limits);
  return records && explanationOf(records, generation);
}

function explanationOf({ taskId, facts, inputs }: TaskRecords, generation: number): EventExplanation | undefined {
  const isAsked = (fact: StoredFacts['record']['facts'][number]): fact is VisibleFact =>
    isVisible(fact) && fact.generation === generation;
  const index = facts.findIndex(({ record }) => record.facts.some(isAsked));
  const stored = facts[index];
  const fact = stored?.record.facts.find(isAsked);
  if (stored === undefined || fact === undefined) return undefined;
  const startMs = startOf(facts, inputs);
  const [visible] = visibleEventsOf(fact, stored, startMs);
  const { agent: _agent, turn: _turn, producer: _producer, attempt: _attempt, chunk, ...event } = visible!;
  const origin = inputsOf(fact, { stored, before: facts[index - 1], inputs });
  const { takeover } = stored.record;
  return {
    taskId,
    cursor: formatCursor({ generation, seq: stored.seq }),
    startedAt: startMs,
    ...event,
    kind: KINDS[fact.kind],
    ...(stored.relay !== undefined && { relay: stored.relay }),
    ...(takeover && { takeover: { atMs: takeover.at - startMs, cause: takeover.cause } }),
    ...producerOf(fact, origin),
    ...(chunk && { chunk }),
    inputs: origin.slice(0, EXPLAINED_INPUTS_MAX).map(input => explainedInput(input, startMs)),
    inputCount: origin.length,
    storedWith: stored.record.facts.filter(isVisible).flatMap(one => (one.generation === generation ? [] : [one.generation])),
  };
}

const KINDS = { 'task.created': 'task', 'status.changed': 'status', 'artifact.updated': 'artifact' } as const;

type Origin = { stored: StoredFacts; before: StoredFacts | undefined; inputs: readonly StoredInput[] };

/** The records that a chunk names, or the record from which the relay decided another event. */
function inputsOf(fact: VisibleFact, { stored, before, inputs }: Origin): StoredInput[] {
  if (fact.kind === 'artifact.updated' && fact.chunk !== undefined) {
    const { firstSeq, lastSeq } = fact.chunk;
    return inputs.filter(input => input.seq >= firstSeq && input.seq <= lastSeq && hasText(input, fact));
  }
  // Records up to `foldedSeq` were decided earlier; records stored after this fact led to later facts.
  const folded = before?.record.aggregate.foldedSeq ?? 0;
  const last = stored.storedAt ?? Number.POSITIVE_INFINITY;
  const found = inputs.find(input => input.seq > folded && input.storedAt <= last && causes(input, fact));
  return found === undefined ? [] : [found];
}

function hasText({ record }: StoredInput, { lane, producer, attempt }: ArtifactUpdated): boolean {
  if ('input' in record || record.from.id !== producer || record.from.attempt !== attempt) return false;
  return record.inputs.some(input => input.kind === 'text' && input.lane === lane);
}

/** Whether the record contains an input that the event follows from. */
function causes({ record }: StoredInput, fact: VisibleFact): boolean {
  if (fact.kind === 'task.created') return 'input' in record && record.input.kind === 'message';
  if (fact.kind === 'artifact.updated') {
    if ('input' in record) return record.input.kind === 'cancel';
    const { id, attempt } = record.from;
    const isOwn = id === fact.producer && attempt === fact.attempt;
    return record.inputs.some(input => (isOwn && isOfLane(input, fact.lane)) || endsTask(input));
  }
  const { state } = fact.event.statusUpdate.status;
  if ('input' in record)
    return record.input.kind === 'cancel' ? state === 'TASK_STATE_CANCELED' : record.input.kind !== 'message';
  return record.inputs.some(input => input.kind === 'status' && input.state === state);
}

function isOfLane(input: AgentInput, lane: string): boolean {
  return (input.kind === 'artifact' || input.kind === 'close') && input.lane === lane;
}

/** Whether an input ends its call or the task, which closes open artifacts. */
function endsTask(input: AgentInput): boolean {
  return input.kind === 'ended' || (input.kind === 'status' && stateWord(input.state) !== 'working');
}

function producerOf(fact: VisibleFact, origin: readonly StoredInput[]): Pick<EventExplanation, 'producer'> {
  const record = origin[0]?.record;
  if (record === undefined || 'input' in record) return {};
  const { id, agent, turn, attempt } = record.from;
  const isOwn = fact.kind !== 'artifact.updated' || fact.producer === id;
  return isOwn ? { producer: { id, agent, turn, attempt } } : {};
}

function explainedInput({ seq, writer, record, storedAt }: StoredInput, startMs: number): ExplainedInput {
  const inputs = 'input' in record ? [record.input] : record.inputs;
  const tokens = inputs.reduce((sum, input) => sum + (input.kind === 'text' ? input.tokens.length : 0), 0);
  const kinds = [...new Set(inputs.map(({ kind }) => kind))];
  return { seq, writer, kinds, tokens, atMs: record.at - startMs, storedMs: storedAt - startMs };
}
