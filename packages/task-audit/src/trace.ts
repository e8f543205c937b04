import { stateWord } from '@hopline/a2a';
import { type AgentRecord, codePoints, type Fact, type Producer } from '@hopline/events';
import { type Log, readTask, type StoredInput } from '@hopline/log';
import { type Percentiles, percentilesOf } from './percentiles.ts';

/** What one producer said in one attempt, in numbers: never what it was. */
export type ProducerActivity = Pick<Producer, 'id' | 'agent' | 'turn' | 'attempt'> & {
  otherEvents: number;
  tokens: number;
  /** Code points of all text, white space and line ends included (S2-38). */
  characters: number;
  /** Milliseconds after the task's first input. */
  firstMs: number;
  lastMs: number;
  /** Longest silence between two tokens, milliseconds. */
  gapMsMax: number;
  /** From the source's word to the log's acknowledgement, milliseconds; of two machines, if their clocks differ. */
  appendMs: Percentiles;
};

/** A visible event, in the order clients see it. */
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
  /** Of a chunk: tokens in it, why it was let go, how long its oldest token was held, how old it was then. */
  chunk?: { tokens: number; reason: string; heldMs: number; ageMs: number };
};

export type TaskTrace = {
  taskId: string;
  contextId: string;
  state: string;
  /** Ids of the traces that its inputs belong to, for the trace store. */
  traces: string[];
  producers: ProducerActivity[];
  events: VisibleEvent[];
  /** Of the oldest token of each chunk: how long the relay held it, and how old it was when it was stored. */
  heldMs: Percentiles;
  ageMs: Percentiles;
};

/** Where the time of a task went, from its log alone (S2-41). Resolves with undefined for a task that is not there. */
export async function traceTask(log: Pick<Log, 'inputs' | 'facts'>, taskId: string): Promise<TaskTrace | undefined> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) return undefined;
  const inputs: StoredInput[] = [];
  for await (const input of log.inputs.read(taskId)) inputs.push(input);
  const facts: Fact[] = [];
  for await (const { record } of readTask(log.facts, newest)) facts.push(...record.facts);
  const startMs = Math.min(...inputs.map(({ record }) => record.at), facts[0]?.at ?? Number.POSITIVE_INFINITY);
  const shown = facts.flatMap(fact => shownOf(fact, startMs));
  const chunks = shown.flatMap(({ chunk }) => (chunk === undefined ? [] : [chunk]));
  const { contextId, state } = newest.record.aggregate;
  return {
    taskId,
    contextId,
    state: stateWord(state),
    traces: [...new Set(inputs.flatMap(({ trace }) => trace?.traceparent?.split('-')[1] ?? []))],
    producers: saidBy(inputs, startMs),
    events: shown,
    heldMs: percentilesOf(chunks.map(({ heldMs }) => heldMs)),
    ageMs: percentilesOf(chunks.map(({ ageMs }) => ageMs)),
  };
}

function shownOf(fact: Fact, startMs: number): VisibleEvent[] {
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

function saidBy(inputs: readonly StoredInput[], startMs: number): ProducerActivity[] {
  const all = new Map<string, Speaker>();
  for (const { record, storedAt } of inputs) {
    if ('input' in record) continue;
    const { id, turn, attempt } = record.from;
    const key = `${turn}/${attempt}/${id}`;
    const speaker = all.get(key) ?? new Speaker(record.from);
    all.set(key, speaker);
    speaker.take(record, storedAt);
  }
  return [...all.values()].map(speaker => speaker.said(startMs));
}

class Speaker {
  readonly #from: Producer;
  readonly #sayMs: number[] = [];
  #events = 0;
  #tokens = 0;
  #characters = 0;
  #firstAt = Number.POSITIVE_INFINITY;
  #lastAt = 0;
  #tokenAt: number | undefined;
  #gapMsMax = 0;

  constructor(from: Producer) {
    this.#from = from;
  }

  take({ at, inputs }: AgentRecord, storedAt: number): void {
    this.#firstAt = Math.min(this.#firstAt, at);
    this.#lastAt = Math.max(this.#lastAt, at);
    this.#sayMs.push(Math.max(0, storedAt - at));
    for (const input of inputs) {
      if (input.kind !== 'text') {
        this.#events += 1;
        continue;
      }
      for (const [index, token] of input.tokens.entries()) this.#token(token, at + (input.dt?.[index] ?? 0));
    }
  }

  said(startMs: number): ProducerActivity {
    const { id, agent, turn, attempt } = this.#from;
    return {
      ...{ id, agent, turn, attempt },
      ...{ otherEvents: this.#events, tokens: this.#tokens, characters: this.#characters },
      ...{ firstMs: this.#firstAt - startMs, lastMs: this.#lastAt - startMs, gapMsMax: this.#gapMsMax },
      appendMs: percentilesOf(this.#sayMs),
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
