import { codePoints, stateWord } from '@hopline/a2a';
import type { AgentRecord, Fact, Producer } from '@hopline/events';
import type { Log, StoredInput } from '@hopline/log';
import { readTaskRecords, type TaskRecords } from './task-records.ts';

/** All zero when there are no values. */
export type Percentiles = { count: number; p50: number; p99: number; max: number };

/** Output of one producer's attempt, in numbers, never in text. */
export type ProducerActivity = Pick<Producer, 'id' | 'agent' | 'turn' | 'attempt'> & {
  otherEvents: number;
  tokens: number;
  /** Code points of all text, white space included (S2-38). */
  characters: number;
  /** Milliseconds after the task's first input. */
  firstMs: number;
  lastMs: number;
  /** Longest silence between two tokens, milliseconds. */
  gapMsMax: number;
  /** From the producer's timestamp to the append, milliseconds. Includes the clock difference of two machines. */
  appendMs: Percentiles;
};

/** An event as clients see it. */
export type VisibleEvent = {
  generation: number;
  /** Milliseconds after the task's first input. */
  atMs: number;
  /** `task`, a state such as `working`, or the artifact's name. */
  name: string;
  characters: number;
  append: boolean;
  last: boolean;
  agent?: string;
  /**
   * Of a chunk: its tokens, why the coalescer released it, and how long its oldest token was held and how old it was when stored.
   */
  chunk?: { tokens: number; reason: string; heldMs: number; ageMs: number };
};

export type TaskTrace = {
  taskId: string;
  contextId: string;
  state: string;
  /** Ids of the OpenTelemetry traces of its inputs. */
  traces: string[];
  producers: ProducerActivity[];
  events: VisibleEvent[];
  /** Of the oldest token of each chunk: its hold time in the relay, and its age when stored. */
  heldMs: Percentiles;
  ageMs: Percentiles;
};

/** Derives the time line of a task from its log alone (S2-41). Resolves with undefined for an unknown task. */
export async function traceTask(log: Pick<Log, 'inputs' | 'facts'>, taskId: string): Promise<TaskTrace | undefined> {
  const records = await readTaskRecords(log, taskId);
  return records && traceOf(records);
}

export function traceOf({ taskId, aggregate, facts: records, inputs }: TaskRecords): TaskTrace {
  const facts = records.flatMap(({ facts: own }) => own);
  const startMs = Math.min(...inputs.map(({ record }) => record.at), facts[0]?.at ?? Number.POSITIVE_INFINITY);
  const events = facts.flatMap(fact => visibleEventsOf(fact, startMs));
  const chunks = events.flatMap(({ chunk }) => (chunk === undefined ? [] : [chunk]));
  const { contextId, state } = aggregate;
  return {
    taskId,
    contextId,
    state: stateWord(state),
    traces: [...new Set(inputs.flatMap(({ trace }) => trace?.traceparent?.split('-')[1] ?? []))],
    producers: producersOf(inputs, startMs),
    events,
    heldMs: percentilesOf(chunks.map(({ heldMs }) => heldMs)),
    ageMs: percentilesOf(chunks.map(({ ageMs }) => ageMs)),
  };
}

function visibleEventsOf(fact: Fact, startMs: number): VisibleEvent[] {
  if (!('event' in fact)) return [];
  const base = { generation: fact.generation, atMs: fact.at - startMs, append: false, last: false };
  if (fact.kind === 'task.created') return [{ ...base, name: 'task', characters: 0 }];
  if (fact.kind === 'status.changed') {
    const { state, message } = fact.event.statusUpdate.status;
    return [{ ...base, name: stateWord(state), characters: charactersOf(message?.parts ?? []) }];
  }
  const { artifact, append = false, lastChunk = false } = fact.event.artifactUpdate;
  const { chunk } = fact;
  const agent = artifact.metadata?.sourceAgent;
  return [
    {
      ...base,
      name: artifact.name ?? 'artifact',
      characters: charactersOf(artifact.parts),
      append,
      last: lastChunk,
      ...(typeof agent === 'string' && { agent }),
      ...(chunk && {
        chunk: { tokens: chunk.count, reason: chunk.reason, heldMs: chunk.heldMs, ageMs: fact.at - chunk.firstAt },
      }),
    },
  ];
}

function charactersOf(parts: readonly { text?: string }[]): number {
  return parts.reduce((sum, { text = '' }) => sum + codePoints(text), 0);
}

function producersOf(inputs: readonly StoredInput[], startMs: number): ProducerActivity[] {
  const all = new Map<string, ActivityCounter>();
  for (const { record, storedAt } of inputs) {
    if ('input' in record) continue;
    const { id, turn, attempt } = record.from;
    const key = `${turn}/${attempt}/${id}`;
    const counter = all.get(key) ?? new ActivityCounter(record.from);
    all.set(key, counter);
    counter.add(record, storedAt);
  }
  return [...all.values()].map(counter => counter.activity(startMs));
}

class ActivityCounter {
  readonly #from: Producer;
  readonly #appendMs: number[] = [];
  #otherEvents = 0;
  #tokens = 0;
  #characters = 0;
  #firstAt = Number.POSITIVE_INFINITY;
  #lastAt = 0;
  #tokenAt: number | undefined;
  #gapMsMax = 0;

  constructor(from: Producer) {
    this.#from = from;
  }

  add({ at, inputs }: AgentRecord, storedAt: number): void {
    this.#firstAt = Math.min(this.#firstAt, at);
    this.#lastAt = Math.max(this.#lastAt, at);
    this.#appendMs.push(Math.max(0, storedAt - at));
    for (const input of inputs) {
      if (input.kind !== 'text') {
        this.#otherEvents += 1;
        continue;
      }
      for (const [index, token] of input.tokens.entries()) this.#token(token, at + (input.dt?.[index] ?? 0));
    }
  }

  activity(startMs: number): ProducerActivity {
    const { id, agent, turn, attempt } = this.#from;
    return {
      ...{ id, agent, turn, attempt },
      ...{ otherEvents: this.#otherEvents, tokens: this.#tokens, characters: this.#characters },
      ...{ firstMs: this.#firstAt - startMs, lastMs: this.#lastAt - startMs, gapMsMax: this.#gapMsMax },
      appendMs: percentilesOf(this.#appendMs),
    };
  }

  #token(token: string, atMs: number): void {
    this.#tokens += 1;
    this.#characters += codePoints(token);
    if (this.#tokenAt !== undefined) this.#gapMsMax = Math.max(this.#gapMsMax, atMs - this.#tokenAt);
    this.#tokenAt = atMs;
    this.#lastAt = Math.max(this.#lastAt, atMs);
  }
}

/** Nearest rank: the smallest value that at least this percentage of all values does not exceed. */
export function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (percent: number) => sorted[Math.max(1, Math.ceil((percent / 100) * sorted.length)) - 1] ?? 0;
  return { count: sorted.length, p50: at(50), p99: at(99), max: sorted.at(-1) ?? 0 };
}
