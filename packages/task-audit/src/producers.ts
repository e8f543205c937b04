import { codePoints, isObject, stateWord } from '@hopline/a2a';
import {
  type AgentRecord,
  type ModelTiming,
  type Producer,
  type TakenWork,
  TOKEN_COUNTS,
  type TokenUsage,
  type ToolTiming,
} from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import type { TracedStep } from './traced-steps.ts';

/** All zero when there are no values. */
export type Percentiles = { count: number; p50: number; p99: number; max: number };

/** Output of one producer's attempt, in numbers, never in text. Times are milliseconds after the task's first input. */
export type ProducerActivity = Pick<Producer, 'id' | 'agent' | 'turn' | 'attempt'> & {
  /** When its work item was queued and taken; absent from records of an earlier version. */
  queuedMs?: number;
  takenMs?: number;
  /** Why its item was delivered again. */
  cause?: 'requeue' | 'redelivery';
  otherEvents: number;
  tokens: number;
  /** Code points of all text, white space included (S2-38). */
  characters: number;
  firstMs: number;
  lastMs: number;
  firstTokenMs?: number;
  lastTokenMs?: number;
  /** When the producer ended its turn, with a state or the end of its call. */
  endMs?: number;
  /** State with which it ended, such as `failed`. */
  state?: string;
  /** Why its call failed. Never contains content of messages. */
  reason?: string;
  /** Longest silence between two tokens. */
  gapMsMax: number;
  /** Milliseconds from the producer's timestamp to the append. Includes the clock difference of the two machines. */
  appendMs: Percentiles;
  /** Tool calls that have ended. */
  tools: TracedTool[];
  /** Completed requests to models. Absent from reports of an earlier version. */
  models?: TracedModelCall[];
  /** Id of the task at the agent's own server; absent for agents of other adapters. */
  remoteTaskId?: string;
  /** The steps of its own code, in order. Absent without any. */
  steps?: readonly TracedStep[];
};

export type TracedTool = { name: string; fromMs: number; ms: number };

/** Tokens as the provider reports them, and their cost by the price file. */
export type TracedModelCall = TokenUsage & { model: string; fromMs: number; ms: number; cost?: number };

/** The attempts of all producers, in the order of their first record. */
export function producersOf(inputs: readonly StoredInput[], startMs: number): ProducerActivity[] {
  const all = new Map<string, ActivityCounter>();
  for (const { record, storedAt } of inputs) {
    if ('input' in record) continue;
    const { id, turn, item = 0, attempt } = record.from;
    const key = `${turn}/${item}/${attempt}/${id}`;
    const counter = all.get(key) ?? new ActivityCounter(record.from, startMs);
    all.set(key, counter);
    counter.add(record, storedAt);
  }
  return [...all.values()].map(counter => counter.activity());
}

class ActivityCounter {
  readonly #from: Producer;
  readonly #startMs: number;
  readonly #appendMs: number[] = [];
  readonly #tools: TracedTool[] = [];
  readonly #models: TracedModelCall[] = [];
  #taken: TakenWork | undefined;
  #otherEvents = 0;
  #tokens = 0;
  #characters = 0;
  #firstAt = Number.POSITIVE_INFINITY;
  #lastAt = 0;
  #firstTokenAt: number | undefined;
  #tokenAt: number | undefined;
  #endAt: number | undefined;
  #end: { state?: string; reason?: string } = {};
  #gapMsMax = 0;
  #remoteTaskId: string | undefined;

  constructor(from: Producer, startMs: number) {
    this.#from = from;
    this.#startMs = startMs;
  }

  add({ at, inputs, taken, tools = [], models = [] }: AgentRecord, storedAt: number): void {
    this.#firstAt = Math.min(this.#firstAt, at);
    this.#lastAt = Math.max(this.#lastAt, at);
    this.#appendMs.push(Math.max(0, storedAt - at));
    if (isTaken(taken)) this.#taken ??= taken;
    if (Array.isArray(tools))
      for (const { name, at: toolAt, ms } of tools.filter(isToolTiming)) {
        this.#tools.push({ name, fromMs: toolAt - this.#startMs, ms });
      }
    if (Array.isArray(models))
      for (const { at: callAt, model, ms, ...more } of models.filter(isModelTiming)) {
        this.#models.push({ model, fromMs: callAt - this.#startMs, ms, ...numbersOf(more) });
      }
    for (const input of inputs) {
      if (input.kind === 'text') {
        for (const [index, token] of input.tokens.entries()) this.#token(token, at + (input.dt?.[index] ?? 0));
        continue;
      }
      if (input.kind === 'remote-run') this.#remoteTaskId = taskIdOf(input.run) ?? this.#remoteTaskId;
      this.#otherEvents += 1;
      const { id } = this.#from;
      const isEnd = (input.kind === 'ended' && input.call === id) || (input.kind === 'status' && isLast(input.state));
      if (!isEnd) continue;
      this.#endAt = Math.max(at, this.#tokenAt ?? 0);
      const reason = input.kind === 'ended' ? input.reason : undefined;
      this.#end = { state: stateWord(input.state), ...(typeof reason === 'string' && { reason }) };
    }
  }

  activity(): ProducerActivity {
    const { id, agent, turn, attempt } = this.#from;
    const { queuedAt, at: takenAt, cause } = this.#taken ?? {};
    const ms = <N extends string>(name: N, at: number | undefined) =>
      (at === undefined ? {} : { [name]: at - this.#startMs }) as { [K in N]?: number };
    return {
      id,
      agent,
      turn,
      attempt,
      ...ms('queuedMs', queuedAt),
      ...ms('takenMs', takenAt),
      ...(cause && { cause }),
      otherEvents: this.#otherEvents,
      tokens: this.#tokens,
      characters: this.#characters,
      firstMs: this.#firstAt - this.#startMs,
      lastMs: this.#lastAt - this.#startMs,
      ...ms('firstTokenMs', this.#firstTokenAt),
      ...ms('lastTokenMs', this.#tokenAt),
      ...ms('endMs', this.#endAt),
      ...this.#end,
      gapMsMax: this.#gapMsMax,
      appendMs: percentilesOf(this.#appendMs),
      tools: this.#tools,
      models: this.#models,
      ...(this.#remoteTaskId !== undefined && { remoteTaskId: this.#remoteTaskId }),
    };
  }

  #token(token: string, atMs: number): void {
    this.#tokens += 1;
    this.#characters += codePoints(token);
    this.#firstTokenAt ??= atMs;
    if (this.#tokenAt !== undefined) this.#gapMsMax = Math.max(this.#gapMsMax, atMs - this.#tokenAt);
    this.#tokenAt = atMs;
    this.#lastAt = Math.max(this.#lastAt, atMs);
  }
}

const isLast = (state: string) => state !== 'TASK_STATE_WORKING';

/** Checks a member that only the trace reads. Any producer may append, so malformed values are ignored. */
function isTaken(value: TakenWork | undefined): value is TakenWork {
  const { at, queuedAt = 0, cause = 'requeue' } = value ?? {};
  return Number.isFinite(at) && Number.isFinite(queuedAt) && (cause === 'requeue' || cause === 'redelivery');
}

function isToolTiming(value: ToolTiming): boolean {
  return typeof value?.name === 'string' && Number.isFinite(value.at) && Number.isFinite(value.ms);
}

function isModelTiming(value: ModelTiming): boolean {
  return typeof value?.model === 'string' && Number.isFinite(value.at) && Number.isFinite(value.ms);
}

/** The members that are numbers. */
function numbersOf(value: TokenUsage & { cost?: number }): TokenUsage & { cost?: number } {
  const names = [...TOKEN_COUNTS, 'cost'] as const;
  return Object.fromEntries(names.flatMap(name => (Number.isFinite(value[name]) ? [[name, value[name]]] : [])));
}

/** Nearest rank: the smallest value such that at least this percentage of all values does not exceed it. */
export function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (percent: number) => sorted[Math.max(1, Math.ceil((percent / 100) * sorted.length)) - 1] ?? 0;
  return { count: sorted.length, p50: at(50), p99: at(99), max: sorted.at(-1) ?? 0 };
}

/** The task of a remote A2A agent; a run of another adapter has other members. */
function taskIdOf(run: unknown): string | undefined {
  return isObject(run) && typeof run.taskId === 'string' ? run.taskId : undefined;
}
