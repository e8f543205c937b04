import assert from 'node:assert/strict';
import { Fold, type Message } from '@hopline/a2a';
import {
  type AgentInput,
  type AgentRecord,
  type CallEnded,
  type Fact,
  isVisible,
  type Producer,
  shardOf,
  type TaskAggregate,
  type Work,
} from '@hopline/events';
import type { Job } from '@hopline/log';
import { createMemoryLog, type MemoryLog, type MemoryLogOptions } from '@hopline/log/memory';
import { AION, agentPresentation, CAIPE, TRANSPARENT } from '@hopline/profiles';
import { type Command, decide, evolve } from '@hopline/task';
import { createLogger } from '@hopline/telemetry';
import type { Agent, AgentEvent, Turn } from './agent.ts';

export const ANSWER = {
  name: 'streaming_result',
  description: 'Streaming result from Platform Engineer',
  separateClose: true as const,
};
export const CALL = 'call-1-1';

export const quiet = createLogger({ service: 'test', instance: 'test', level: 'silent' });

type Mode = 'caipe' | 'transparent' | 'aion' | 'direct';

const PRESENTATIONS = {
  caipe: agentPresentation(CAIPE, ANSWER),
  transparent: agentPresentation(TRANSPARENT),
  aion: agentPresentation(AION),
  direct: agentPresentation(TRANSPARENT),
};

const profileOf = (mode: Mode) => (mode === 'direct' ? 'transparent' : mode);

/** One task in the in-memory log, with a minimal relay: the decider folds the inputs. */
export class TaskLog {
  readonly log: MemoryLog;
  readonly taskId = 'task-1';
  aggregate!: TaskAggregate;
  facts: Fact[] = [];
  #seq = 0;
  readonly #mode: Mode;

  private constructor(mode: Mode, options: MemoryLogOptions) {
    this.#mode = mode;
    this.log = createMemoryLog(options);
  }

  static async create(mode: Mode, options: MemoryLogOptions = {}): Promise<TaskLog> {
    const task = new TaskLog(mode, options);
    const message: Message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] };
    const role = mode === 'direct' ? ('agent.argocd' as const) : ('supervisor' as const);
    const profile = profileOf(mode);
    await task.decide({
      kind: 'client',
      taskId: task.taskId,
      input: { kind: 'message', message, contextId: 'c1', role, profile },
    });
    if (mode !== 'direct') {
      const from: Producer = { id: 'supervisor', agent: 'supervisor', turn: 1, attempt: 1 };
      await task.decide({ kind: 'agent', from, input: { kind: 'status', state: 'TASK_STATE_WORKING' } });
      const statusPasses = mode !== 'caipe' && { statusPasses: true as const };
      await task.decide({ kind: 'agent', from, input: { kind: 'call', call: CALL, agent: 'argocd', ...statusPasses } });
    }
    return task;
  }

  job(attempt = 1, more: Partial<Job & Work> = {}): Job {
    const { item = 1, exhausted = false, requeues = 0, trace, ...work } = more;
    const call = { id: CALL, presentation: PRESENTATIONS[this.#mode] };
    const message: Message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] };
    const { taskId } = this;
    const profile = profileOf(this.#mode);
    const base: Work = { v: 1, taskId, contextId: 'c1', turn: 1, profile, message, ...(this.#mode !== 'direct' && { call }) };
    return { work: { ...base, ...work }, item, attempt, requeues, exhausted, ...(trace && { trace }) };
  }

  /** Decides one item and stores its facts, as a relay would. Returns why it was dropped. */
  async decide(item: Command): Promise<string | undefined> {
    const { facts, rejected: dropped } = decide(this.aggregate, item, Date.now());
    if (facts.length === 0) return dropped;
    for (const fact of facts) this.aggregate = evolve(this.aggregate, fact);
    this.facts.push(...facts);
    const start = { startSeq: this.#seq === 0 ? 0 : 1, startStoredAt: 0 };
    const record = { v: 1 as const, facts: [...facts], aggregate: this.aggregate, ...start };
    this.#seq = (await this.log.facts.append(record, { expected: this.#seq, id: `f${this.facts.length}` })).seq;
    return undefined;
  }

  /** The producer writes its first input, and the relay folds it. */
  async recordOf(from: Producer): Promise<void> {
    const { id, item = 1, attempt } = from;
    this.aggregate = { ...this.aggregate, producers: { ...this.aggregate.producers, [id]: { item, attempt, n: 1 } } };
    await this.decide({ kind: 'agent', from, input: { kind: 'open', lane: `${id}/x`, artifact: { name: 'x' } } });
  }

  async cancel(): Promise<void> {
    await this.decide({ kind: 'client', taskId: this.taskId, input: { kind: 'cancel' } });
  }

  async records(): Promise<AgentRecord[]> {
    const stop = new AbortController();
    const records: AgentRecord[] = [];
    const reading = (async () => {
      for await (const { record } of this.log.inputs.readShard(shardOf(this.taskId, this.log.shards), 1, stop.signal)) {
        if (record.from !== 'client') records.push(record as AgentRecord);
      }
    })();
    await new Promise(resolve => setImmediate(resolve));
    stop.abort();
    await reading;
    return records;
  }

  async inputs(): Promise<AgentInput[]> {
    return (await this.records()).flatMap(record => record.inputs);
  }

  /** Folds all inputs that are not folded yet; every input must be accepted, and the client's view must be sound. */
  async fold(): Promise<Fold> {
    for (const { from, inputs, n } of await this.records()) {
      for (const input of inputs) {
        const chunk = { firstSeq: 1, lastSeq: 1, count: 1, n, reason: 'test', heldMs: 0, firstAt: 0, lastAt: 0 };
        const item: Command =
          input.kind === 'text'
            ? { kind: 'run', from, lane: input.lane, text: input.tokens.join(''), last: false, n, chunk }
            : { kind: 'agent', from, input };
        const dropped = await this.decide(item);
        assert.ok(dropped === undefined || dropped === 'no change', `dropped ${input.kind}: ${dropped}`);
        const producers = { ...this.aggregate.producers, [from.id]: { item: from.item ?? 1, attempt: from.attempt, n } };
        this.aggregate = { ...this.aggregate, producers };
      }
    }
    const fold = new Fold();
    for (const fact of this.facts.filter(isVisible)) fold.add(fact.event);
    return fold;
  }

  ended(): CallEnded | undefined {
    return this.facts.find(fact => fact.kind === 'call.ended');
  }
}

/** An agent that plays a list of events, or a generator. */
export function scripted(script: AgentEvent[] | ((turn: Turn) => AsyncIterable<AgentEvent>)): Agent {
  return {
    description: 'Plays a script',
    skills: async () => [],
    run: turn => (typeof script === 'function' ? script(turn) : listed(script)),
    close: async () => {},
  };
}

async function* listed(events: AgentEvent[]): AsyncGenerator<AgentEvent> {
  yield* events;
}
