import { codePoints, isInProgress, isInterrupted, stateWord } from '@hopline/a2a';
import { type Fact, type FactRecord, isVisible, type Takeover } from '@hopline/events';
import type { StoredFacts, StoredInput } from '@hopline/log';
import { CriticalPaths, costsOf, type HopCost, type TurnPath } from './critical-path.ts';
import { type ModelCost, modelCostsOf } from './model-costs.ts';
import { type Percentiles, type ProducerActivity, percentilesOf, producersOf } from './producers.ts';
import { partialOf, type RecordKind, type TaskRecords } from './task-records.ts';
import { TracedSteps } from './traced-steps.ts';
import { NOT_RECORDED, type TurnHop, turnHopsOf } from './turn-hops.ts';
import { turnOfFact } from './turn-of-fact.ts';

/** A chunk: its inputs, why the coalescer released it, and its hops in milliseconds. */
export type TracedChunk = {
  tokens: number;
  reason: string;
  /** Raw sequences of its first and last record. */
  firstSeq: number;
  lastSeq: number;
  /** Times of its first and last token, in milliseconds after the task's first input. */
  firstMs: number;
  lastMs: number;
  /** The hops of its oldest token: `publish`, `hold`, `wait_for_append`, `append` (absent: unknown). */
  publishMs: number;
  heldMs: number;
  waitMs: number;
  appendMs?: number;
  /** Age of its oldest token when its append began. */
  ageMs: number;
};

/** An event as clients see it. */
export type VisibleEvent = {
  generation: number;
  /** Log sequence of its record. Together with the generation it is the cursor. */
  seq: number;
  /** When its append began, milliseconds after the task's first input. */
  atMs: number;
  /** When the log had stored it; absent for facts that were copied forward. */
  storedMs?: number;
  /** `task`, a state such as `working`, or the artifact's name. */
  name: string;
  characters: number;
  append: boolean;
  last: boolean;
  agent?: string;
  /** Turn of the event; producers keep their ids from turn to turn. */
  turn: number;
  /** Id and attempt of the producer; absent if the relay or a client caused the event. */
  producer?: string;
  attempt?: number;
  chunk?: TracedChunk;
};

/** Consecutive records of one relay. `takeover`: another owner of the shard had begun the task, which was still open. */
export type RelayPeriod = {
  /** Absent from records that were copied forward. */
  relay?: string;
  fromGeneration: number;
  records: number;
  fromMs: number;
  takeover?: { atMs: number; cause: Takeover['cause'] };
};

/**
 * A time without events. Its cause is one of these: the task waited for its client, a relay took it over, an attempt was repeated, work
 * waited for a free worker, a tool ran, the relay had not yet stored available text, or the producers wrote nothing.
 */
export type TracedGap = {
  fromMs: number;
  toMs: number;
  /** Generation of the event that follows the gap. */
  generation: number;
  cause: 'client' | 'takeover' | 'attempt' | 'queue' | 'tool' | 'relay' | 'agent';
};

/** Shorter times without events do not count as gaps. */
const GAP_MS_MIN = 1_000;

/** A hop of every chunk. Chunks overlap each other and the work of the agent, so their sum is not a delay. */
export type ChunkHop = Percentiles & { hop: 'publish' | 'hold' | 'wait_for_append' | 'append' };

export type TaskTrace = {
  taskId: string;
  contextId: string;
  state: string;
  /** Why a failed task failed: the agent and the reason of its newest call that failed. Never contains content of messages. */
  fault?: { agent: string; reason: string };
  /** Epoch milliseconds of the task's first input, from which every other time counts. */
  startedAt: number;
  /** When the task was read, if it was in progress at that time. Its newest turn is shown up to then. */
  nowMs?: number;
  /** Ids of the OpenTelemetry traces of its inputs. */
  traces: string[];
  /** The traces that were not sampled: log lines have them, but no tracing backend. Absent if there are none. */
  unsampled?: string[];
  /** The critical path of each turn, from the question to the end, and what each hop cost there, the most costly first. */
  turns: TurnPath[];
  costs: HopCost[];
  /** Tokens and cost of models by agent. Absent from reports of an earlier version. */
  models?: ModelCost[];
  /** The hops of one chunk. */
  chunkHops: ChunkHop[];
  /** Kinds of records whose beginning is missing. Absent for a complete task. */
  partial?: RecordKind[];
  /** Names of the hops that the log does not know. */
  notRecorded: readonly string[];
  hops: TurnHop[];
  relays: RelayPeriod[];
  gaps: TracedGap[];
  producers: ProducerActivity[];
  events: VisibleEvent[];
  /** How long the relay held each chunk's oldest token, and the age of that token when its append began. */
  heldMs: Percentiles;
  ageMs: Percentiles;
};

/** Ids of the traces of inputs, and the ids among them that are sampled in no input. */
function tracesOf(inputs: TaskRecords['inputs']): { traces: string[]; unsampled: string[] } {
  const sampled = new Map<string, boolean>();
  for (const { trace } of inputs) {
    const [, id, , flags = ''] = trace?.traceparent?.split('-') ?? [];
    if (id !== undefined) sampled.set(id, sampled.get(id) === true || (Number.parseInt(flags, 16) & 1) === 1);
  }
  const traces = [...sampled.keys()];
  return { traces, unsampled: traces.filter(id => sampled.get(id) === false) };
}

/** Derives the timeline of a task from nothing but its records (S2-41). `now`: when they were read, in epoch milliseconds. */
export function traceOf(records: TaskRecords, now?: number): TaskTrace {
  const { taskId, aggregate, facts, inputs } = records;
  const partial = partialOf(records);
  const startMs = startOf(facts, inputs);
  const steps = new TracedSteps(startMs);
  for (const { record } of facts) steps.add(record);
  const producers = producersOf(inputs, startMs).map(producer => withSteps(producer, steps));
  const events = facts.flatMap(stored => stored.record.facts.flatMap(fact => visibleEventsOf(fact, stored, startMs)));
  const chunks = events.flatMap(({ chunk }) => (chunk === undefined ? [] : [chunk]));
  const hops = turnHopsOf(inputs, facts, producers, startMs);
  const { contextId, state } = aggregate;
  const nowMs = now !== undefined && isInProgress(state) ? now - startMs : undefined;
  const turns = new CriticalPaths({ facts, inputs, producers, startMs, nowMs }).turns();
  const relays = relaysOf(facts, startMs);
  const fault = state === 'TASK_STATE_FAILED' ? faultOf(facts) : undefined;
  const { traces, unsampled } = tracesOf(inputs);
  return {
    taskId,
    contextId,
    state: stateWord(state),
    ...(fault && { fault }),
    startedAt: startMs,
    ...(nowMs !== undefined && { nowMs }),
    traces,
    ...(unsampled.length > 0 && { unsampled }),
    turns,
    costs: costsOf(turns),
    models: modelCostsOf(producers),
    chunkHops: chunkHopsOf(chunks),
    ...(partial.length > 0 && { partial }),
    notRecorded: NOT_RECORDED,
    hops,
    relays,
    gaps: gapsOf(facts, { events, producers, relays }),
    producers,
    events,
    heldMs: percentilesOf(chunks.map(({ heldMs }) => heldMs)),
    ageMs: percentilesOf(chunks.map(({ ageMs }) => ageMs)),
  };
}

function faultOf(facts: readonly StoredFacts[]): TaskTrace['fault'] {
  const ended = facts.flatMap(({ record }) => record.facts).findLast(fact => fact.kind === 'call.ended');
  if (ended?.kind !== 'call.ended' || ended.state !== 'TASK_STATE_FAILED' || typeof ended.reason !== 'string') return undefined;
  return { agent: ended.agent, reason: ended.reason };
}

function withSteps(producer: ProducerActivity, traced: TracedSteps): ProducerActivity {
  const steps = traced.of(producer);
  return steps.length === 0 ? producer : { ...producer, steps };
}

/** Epoch milliseconds of the task's first input, or of its first fact if retention has removed the inputs. */
export function startOf(facts: readonly StoredFacts[], inputs: readonly StoredInput[]): number {
  return inputs.reduce(
    (least, { record }) => Math.min(least, record.at),
    facts[0]?.record.facts[0]?.at ?? Number.POSITIVE_INFINITY,
  );
}

export function visibleEventsOf(fact: Fact, { seq, storedAt, record }: StoredFacts, startMs: number): VisibleEvent[] {
  if (!('event' in fact)) return [];
  const stored = storedAt !== undefined && { storedMs: storedAt - startMs };
  const turn = turnOfFact(fact, record);
  const base = { generation: fact.generation, seq, atMs: fact.at - startMs, ...stored, append: false, last: false, turn };
  if (fact.kind === 'task.created') return [{ ...base, name: 'task', characters: 0 }];
  if (fact.kind === 'status.changed') {
    const { state, message } = fact.event.statusUpdate.status;
    return [{ ...base, name: stateWord(state), characters: charactersOf(message?.parts ?? []) }];
  }
  const { artifact, append = false, lastChunk = false } = fact.event.artifactUpdate;
  const agent = artifact.metadata?.sourceAgent;
  const chunk = chunkOf(fact, storedAt, startMs);
  return [
    {
      ...base,
      name: artifact.name ?? 'artifact',
      characters: charactersOf(artifact.parts),
      append,
      last: lastChunk,
      ...(typeof agent === 'string' && { agent }),
      producer: fact.producer,
      attempt: fact.attempt,
      ...(chunk && { chunk }),
    },
  ];
}

/** The hops add up to the time from the oldest token to the storage of the chunk. */
function chunkOf(
  { at, chunk }: Extract<Fact, { kind: 'artifact.updated' }>,
  storedAt: number | undefined,
  startMs: number,
): TracedChunk | undefined {
  if (chunk === undefined) return undefined;
  const { count: tokens, reason, firstSeq, lastSeq, heldMs, waitMs = 0, firstAt, lastAt } = chunk;
  return {
    tokens,
    reason,
    firstSeq,
    lastSeq,
    firstMs: firstAt - startMs,
    lastMs: lastAt - startMs,
    publishMs: Math.max(0, at - waitMs - heldMs - firstAt),
    heldMs,
    waitMs,
    ...(storedAt !== undefined && { appendMs: Math.max(0, storedAt - at) }),
    ageMs: at - firstAt,
  };
}

function charactersOf(parts: readonly { text?: string }[]): number {
  return parts.reduce((sum, { text = '' }) => sum + codePoints(text), 0);
}

function chunkHopsOf(chunks: readonly TracedChunk[]): ChunkHop[] {
  const of = (hop: ChunkHop['hop'], values: readonly number[]) => ({ hop, ...percentilesOf(values) });
  return [
    of(
      'publish',
      chunks.map(({ publishMs }) => publishMs),
    ),
    of(
      'hold',
      chunks.map(({ heldMs }) => heldMs),
    ),
    of(
      'wait_for_append',
      chunks.map(({ waitMs }) => waitMs),
    ),
    of(
      'append',
      chunks.flatMap(({ appendMs }) => (appendMs === undefined ? [] : [appendMs])),
    ),
  ];
}

function relaysOf(facts: readonly StoredFacts[], startMs: number): RelayPeriod[] {
  const periods: RelayPeriod[] = [];
  let generation = generationBefore(facts[0]);
  for (const { record, relay, storedAt } of facts) {
    let period = periods.at(-1);
    if (period === undefined || period.relay !== relay || record.takeover !== undefined) {
      const at = record.facts[0]?.at ?? storedAt ?? record.aggregate.at;
      const takeover = takeoverOf(record, startMs);
      period = {
        ...(relay !== undefined && { relay }),
        fromGeneration: record.facts.find(isVisible)?.generation ?? generation + 1,
        records: 0,
        fromMs: at - startMs,
        ...(takeover && { takeover }),
      };
      periods.push(period);
    }
    period.records += 1;
    generation = record.aggregate.generation;
  }
  return periods;
}

/** The generation before the first stored record: 0, unless retention has removed the beginning. */
function generationBefore(first: StoredFacts | undefined): number {
  return first === undefined ? 0 : first.record.aggregate.generation - first.record.facts.filter(isVisible).length;
}

function takeoverOf({ takeover }: FactRecord, startMs: number): RelayPeriod['takeover'] {
  return takeover && { atMs: takeover.at - startMs, cause: takeover.cause };
}

type GapContext = Pick<TaskTrace, 'events' | 'producers' | 'relays'>;

function gapsOf(facts: readonly StoredFacts[], context: GapContext): TracedGap[] {
  const waits = new Set<number>();
  for (const { record } of facts)
    for (const fact of record.facts)
      if (fact.kind === 'status.changed' && isInterrupted(fact.event.statusUpdate.status.state)) waits.add(fact.generation);
  const { events } = context;
  return events.flatMap((event, index) => {
    const before = events[index - 1];
    if (before === undefined || event.atMs - before.atMs < GAP_MS_MIN) return [];
    const gap = { fromMs: before.atMs, toMs: event.atMs, generation: event.generation };
    return [
      { ...gap, cause: waits.has(before.generation) ? 'client' : causeOf(gap, oldestAgeMs(events, index), context) } as const,
    ];
  });
}

/** The activity that took more than half of the gap. A takeover or a new attempt within the gap explains it regardless of its duration. */
function causeOf(
  { fromMs, toMs }: Pick<TracedGap, 'fromMs' | 'toMs'>,
  ageMs: number,
  { producers, relays }: GapContext,
): TracedGap['cause'] {
  const isWithin = (ms: number | undefined) => ms !== undefined && ms >= fromMs && ms <= toMs;
  const half = (toMs - fromMs) / 2;
  const overlap = (begins: number, ends: number) => Math.min(ends, toMs) - Math.max(begins, fromMs);
  if (relays.some(({ takeover }) => isWithin(takeover?.atMs))) return 'takeover';
  if (producers.some(({ attempt, takenMs }) => attempt > 1 && isWithin(takenMs))) return 'attempt';
  if (producers.some(({ queuedMs = 0, takenMs = 0 }) => overlap(queuedMs, takenMs) > half)) return 'queue';
  if (producers.some(({ tools }) => tools.some(tool => overlap(tool.fromMs, tool.fromMs + tool.ms) > half))) return 'tool';
  return ageMs > half ? 'relay' : 'agent';
}

/** Age of the oldest text in the record of an event. */
function oldestAgeMs(events: readonly VisibleEvent[], first: number): number {
  let oldest = 0;
  for (let index = first; events[index]?.seq === events[first]?.seq && index < events.length; index++)
    oldest = Math.max(oldest, events[index]?.chunk?.ageMs ?? 0);
  return oldest;
}
