import type { Message } from '@hopline/a2a';
import type {
  AgentInput,
  Fact,
  FactRecord,
  LaneArtifact,
  MessageInput,
  Producer,
  ProfileName,
  Role,
  TaskAggregate,
} from '@hopline/events';
import type { Command, RejectionReason } from './commands.ts';
import { decide } from './decide.ts';
import { evolve } from './evolve.ts';
import { project, type TaskView } from './project.ts';

/** A clock that advances by 10 ms whenever it is read. */
function ticks(): () => number {
  let at = 1_000;
  return () => (at += 10);
}

/** A task for tests and the commands that it receives, decided with the real rules. By default every command has its own time. */
export class Scenario {
  readonly taskId: string;
  aggregate: TaskAggregate | undefined;
  view: TaskView | undefined;
  readonly facts: Fact[] = [];
  readonly rejected: RejectionReason[] = [];
  readonly #now: () => number;

  constructor(taskId = 't1', now = ticks()) {
    this.taskId = taskId;
    this.#now = now;
  }

  when(command: Command): this {
    const decision = decide(this.aggregate, command, this.#now());
    if (decision.rejected !== undefined) this.rejected.push(decision.rejected);
    return this.given(...decision.facts);
  }

  /** Adds facts without applying the rules. */
  given(...facts: Fact[]): this {
    for (const fact of facts) {
      this.facts.push(fact);
      this.aggregate = evolve(this.aggregate, fact);
      this.view = project(this.view, fact);
    }
    return this;
  }

  message(
    text: string,
    messageId = 'm1',
    role: Role = 'supervisor',
    profile: ProfileName = 'caipe',
    more: Partial<MessageInput> = {},
  ): this {
    const message: Message = { messageId, role: 'ROLE_USER', parts: [{ text }] };
    const input = { kind: 'message', message, contextId: 'c1', role, profile, ...more } as const;
    return this.when({ kind: 'client', taskId: this.taskId, input });
  }

  cancel(): this {
    return this.when({ kind: 'client', taskId: this.taskId, input: { kind: 'cancel' } });
  }

  input(from: Producer, input: Exclude<AgentInput, { kind: 'text' }>): this {
    return this.when({ kind: 'agent', from, input });
  }

  open(from: Producer, lane: string, artifact: LaneArtifact = { name: 'answer' }): this {
    return this.input(from, { kind: 'open', lane, artifact });
  }

  text(from: Producer, lane: string, text: string, last = false): this {
    const chunk = { firstSeq: 1, lastSeq: 1, count: 1, n: 1, reason: 'ready', heldMs: 0, firstAt: 0, lastAt: 0 };
    return this.when({ kind: 'run', from, lane, text, last, n: 1, chunk });
  }

  /** The visible facts: a state, or `=` (opens or replaces) or `+` (appends) with the text of a chunk, and `.` for lastChunk. */
  events(): string[] {
    return this.facts.flatMap(fact => {
      if (fact.kind === 'task.created') return ['task'];
      if (fact.kind === 'status.changed') return [fact.event.statusUpdate.status.state.replace('TASK_STATE_', '').toLowerCase()];
      if (fact.kind !== 'artifact.updated') return [];
      const { append, lastChunk, artifact } = fact.event.artifactUpdate;
      return [`${append ? '+' : '='}${artifact.parts.map(part => part.text).join('')}${lastChunk ? '.' : ''}`];
    });
  }
}

/** Store for records of facts: `log.facts` of any log. */
type FactSink = { append(record: FactRecord, options: { expected: number; id: string }): Promise<{ seq: number }> };

/** A scenario whose facts are stored in a log, as its relay would store them. */
export class StoredScenario extends Scenario {
  /** The newest record and its log sequence. */
  newest: { seq: number; record: FactRecord } | undefined;
  readonly #log: FactSink;
  #stored = 0;
  #appends: Promise<void> = Promise.resolve();

  constructor(log: FactSink, taskId = 't1', now: () => number = Date.now) {
    super(taskId, now);
    this.#log = log;
  }

  /** Appends the facts since the last call as one record, after those of earlier calls; without new facts it appends nothing. */
  async store(): Promise<this> {
    const facts = this.facts.slice(this.#stored);
    const { aggregate } = this;
    this.#stored = this.facts.length;
    if (facts.length > 0) this.#appends = this.#appends.then(() => this.#append(facts, aggregate!));
    await this.#appends;
    return this;
  }

  async #append(facts: Fact[], aggregate: TaskAggregate): Promise<void> {
    const expected = this.newest?.seq ?? 0;
    const startSeq = this.newest?.record.startSeq || expected;
    const record: FactRecord = { v: 1, facts, aggregate, startSeq, startStoredAt: 0 };
    const { seq } = await this.#log.append(record, { expected, id: `${this.taskId}:${expected}` });
    this.newest = { seq, record };
  }
}

export const supervisor = (attempt = 1, turn = 1): Producer => ({ id: 'supervisor', agent: 'supervisor', turn, attempt });
export const agent = (call = 'call-1-1', attempt = 1, turn = 1): Producer => ({ id: call, agent: 'argocd', turn, attempt });

/** An open task whose root agent wrote `count` artifacts, one fact each, for tests of the cost of long tasks. */
export function taskOfArtifacts(count: number): { facts: Fact[]; aggregate: TaskAggregate } {
  const { facts, aggregate } = new Scenario().message('go');
  const updates = Array.from({ length: count }, (_, index): Fact => {
    const artifact = { artifactId: `${index}`, parts: [{ data: index }] };
    const event = { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact, append: false } };
    return { kind: 'artifact.updated', at: 1, generation: index + 2, lane: 'l', producer: 'supervisor', attempt: 1, event };
  });
  return { facts: [...facts, ...updates], aggregate: { ...aggregate!, generation: count + 1 } };
}
