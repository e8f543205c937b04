import assert from 'node:assert/strict';
import { Fold, type Message } from '@hopline/a2a';
import {
  type AgentInput,
  type AgentRecord,
  type CallEnded,
  isVisible,
  ordinalsOf,
  type Producer,
  shardOf,
  type Work,
} from '@hopline/events';
import type { Job } from '@hopline/log';
import { createMemoryLog, type MemoryLog, type MemoryLogOptions } from '@hopline/log/memory';
import { AION, agentPresentation, CAIPE, CHAT, TRANSPARENT } from '@hopline/profiles';
import type { Command } from '@hopline/task';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { createLogger } from '@hopline/telemetry';
import type { Agent, AgentEvent, Turn } from './agent.ts';
import { runTurn } from './run-turn.ts';

export const ANSWER = {
  name: 'streaming_result',
  description: 'Streaming result from Platform Engineer',
  separateClose: true as const,
};
export const CALL = 'call-1-1';

export const quiet = createLogger({ service: 'test', instance: 'test', level: 'silent' });

export const text = (content: string, id?: string): AgentEvent => ({
  type: 'text',
  text: content,
  ...(id !== undefined && { id }),
});
export const message = (content: string): Message => ({ messageId: 'reply', role: 'ROLE_AGENT', parts: [{ text: content }] });
export const done: AgentEvent = { type: 'done' };

/** Runs one turn of the agent that the task names. */
export function run(task: TaskLog, agent: Agent, job = task.job(), signal = new AbortController().signal) {
  return runTurn({ log: task.log, agent, name: 'argocd', logger: quiet, signal }, job);
}

type Mode = 'caipe' | 'chat' | 'transparent' | 'aion' | 'direct';

const PRESENTATIONS = {
  caipe: agentPresentation(CAIPE, ANSWER),
  chat: agentPresentation(CHAT, ANSWER),
  transparent: agentPresentation(TRANSPARENT),
  aion: agentPresentation(AION),
  direct: agentPresentation(TRANSPARENT),
};

const profileOf = (mode: Mode) => (mode === 'direct' ? 'transparent' : mode);

/** One task in the in-memory log. The test acts as its relay: it folds the agent's inputs when it asks for the result. */
export class TaskLog extends StoredScenario {
  readonly log: MemoryLog;
  readonly #mode: Mode;
  #folded = 0;

  private constructor(mode: Mode, log: MemoryLog) {
    super(log.facts, 'task-1');
    this.#mode = mode;
    this.log = log;
  }

  static async create(mode: Mode, options: MemoryLogOptions = {}): Promise<TaskLog> {
    const task = new TaskLog(mode, createMemoryLog(options));
    task.message('hello', 'm1', mode === 'direct' ? 'agent.argocd' : 'supervisor', profileOf(mode));
    if (mode !== 'direct') {
      const statusPasses = mode !== 'caipe' && { statusPasses: true as const };
      if (mode === 'caipe') task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' });
      task.input(supervisor(), { kind: 'call', call: CALL, agent: 'argocd', ...statusPasses });
    }
    return task.store();
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

  /** The producer writes its first input, and the relay folds it. */
  async recordOf(from: Producer): Promise<void> {
    this.#mark(from, 1);
    await this.input(from, { kind: 'open', lane: `${from.id}/x`, artifact: { name: 'x' } }).store();
  }

  async records(): Promise<AgentRecord[]> {
    const stop = new AbortController();
    const records: AgentRecord[] = [];
    const reading = (async () => {
      for await (const { record } of this.log.inputs.readShard(shardOf(this.taskId, this.log.layouts), 1, stop.signal)) {
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

  /** Folds all inputs that are not folded yet. Every input must be accepted, and the client's view must be sound. */
  async fold(): Promise<Fold> {
    await this.#foldRecords(await this.records());
    const fold = new Fold();
    for (const fact of this.facts.filter(isVisible)) fold.add(fact.event);
    return fold;
  }

  /** Folds the records that no earlier call has folded. */
  async foldNew(): Promise<void> {
    const records = await this.records();
    const folded = this.#folded;
    this.#folded = records.length;
    await this.#foldRecords(records.slice(folded));
  }

  async #foldRecords(records: readonly AgentRecord[]): Promise<void> {
    for (const { from, inputs, n } of records) {
      let lastN = n - 1;
      for (const input of inputs) {
        lastN += ordinalsOf(input);
        this.#mark(from, lastN);
        const chunk = { firstSeq: 1, lastSeq: 1, count: 1, n, reason: 'test', heldMs: 0, firstAt: 0, lastAt: 0 };
        const command: Command =
          input.kind === 'text'
            ? { kind: 'run', from, lane: input.lane, text: input.tokens.join(''), last: false, n, chunk }
            : { kind: 'agent', from, input };
        const rejections = this.rejected.length;
        await this.when(command).store();
        const rejection = this.rejected[rejections];
        assert.ok(rejection === undefined || rejection === 'no change', `rejected ${input.kind}: ${rejection}`);
      }
    }
  }

  #mark({ id, item = 1, attempt }: Producer, n: number): void {
    const aggregate = this.aggregate!;
    this.aggregate = { ...aggregate, producers: { ...aggregate.producers, [id]: { item, attempt, n } } };
  }

  ended(): CallEnded | undefined {
    return this.facts.find(fact => fact.kind === 'call.ended');
  }
}

/** An agent that plays a list of events or a generator. */
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
