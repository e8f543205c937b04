import { type Cursor, formatCursor, isVisible, type Takeover, type VisibleFact, type Writer } from '@hopline/events';
import type { StoredFacts, StoredInput } from '@hopline/log';
import { CriticalPaths, type PathPart } from './critical-path.ts';
import { inputsOf } from './event-inputs.ts';
import { producersOf } from './producers.ts';
import { type ReadableLog, type ReadLimits, readTaskRecords, type TaskRecords } from './task-records.ts';
import { startOf, type TracedChunk, type VisibleEvent, visibleEventsOf } from './trace.ts';
import { type TracedStep, TracedSteps } from './traced-steps.ts';

/** Maximum number of records in an explanation. Only the first ones are listed, because a chunk after a long takeover has thousands. */
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
  /** The steps of the producer's own code that its attempt had reached before the event. Absent if there are none. */
  steps?: readonly TracedStep[];
  chunk?: TracedChunk;
  /**
   * The records from which the event was made, at most EXPLAINED_INPUTS_MAX. Empty if the relay decided the event without an input, or if
   * retention has removed the records.
   */
  inputs: ExplainedInput[];
  inputCount: number;
  /** Events that were stored together with this one, in the same record. */
  storedWith: number[];
  /** The event's critical path, from the question of its turn to its storage. */
  path: readonly PathPart[];
};

/** Resolves with undefined for an unknown task or generation. Throws TaskTooLong. */
export async function explainEvent(
  log: ReadableLog,
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
  const produced = producerOf(fact, origin);
  return {
    taskId,
    cursor: formatCursor({ generation, seq: stored.seq }),
    startedAt: startMs,
    ...event,
    kind: KINDS[fact.kind],
    ...(stored.relay !== undefined && { relay: stored.relay }),
    ...(takeover && { takeover: { atMs: takeover.at - startMs, cause: takeover.cause } }),
    ...produced,
    ...stepsOf(produced.producer, new TracedSteps(startMs), facts.slice(0, index), { record: stored.record, fact }),
    ...(chunk && { chunk }),
    inputs: origin.slice(0, EXPLAINED_INPUTS_MAX).map(input => explainedInput(input, startMs)),
    inputCount: origin.length,
    storedWith: stored.record.facts.filter(isVisible).flatMap(one => (one.generation === generation ? [] : [one.generation])),
    path: new CriticalPaths({ facts, inputs, producers: producersOf(inputs, startMs), startMs }).pathTo(generation),
  };
}

const KINDS = { 'task.created': 'task', 'status.changed': 'status', 'artifact.updated': 'artifact' } as const;

function producerOf(fact: VisibleFact, origin: readonly StoredInput[]): Pick<EventExplanation, 'producer'> {
  const record = origin[0]?.record;
  if (record === undefined || 'input' in record) return {};
  const { id, agent, turn, attempt } = record.from;
  const isOwn = fact.kind !== 'artifact.updated' || fact.producer === id;
  return isOwn ? { producer: { id, agent, turn, attempt } } : {};
}

function stepsOf(
  producer: EventExplanation['producer'],
  traced: TracedSteps,
  earlier: readonly StoredFacts[],
  { record, fact }: { record: StoredFacts['record']; fact: VisibleFact },
): Pick<EventExplanation, 'steps'> {
  if (producer === undefined) return {};
  for (const one of earlier) traced.add(one.record);
  const steps = traced.add(record, fact).of(producer);
  return steps.length === 0 ? {} : { steps };
}

function explainedInput({ seq, writer, record, storedAt }: StoredInput, startMs: number): ExplainedInput {
  const inputs = 'input' in record ? [record.input] : record.inputs;
  const tokens = inputs.reduce((sum, input) => sum + (input.kind === 'text' ? input.tokens.length : 0), 0);
  const kinds = [...new Set(inputs.map(({ kind }) => kind))];
  return { seq, writer, kinds, tokens, atMs: record.at - startMs, storedMs: storedAt - startMs };
}
