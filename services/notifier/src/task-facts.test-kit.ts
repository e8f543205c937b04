import type { StreamResponse, TaskState } from '@hopline/a2a';
import type { Fact, Owner, TaskAggregate } from '@hopline/events';
import type { Log } from '@hopline/log';
import { evolve } from '@hopline/task';

/** Appends the facts of one task as its relay would. */
export class TaskFacts {
  readonly taskId: string;
  readonly #log: Log;
  readonly #owner: Owner | undefined;
  #aggregate: TaskAggregate | undefined;
  #seq = 0;
  #startSeq = 0;

  constructor(log: Log, taskId: string, owner?: Owner) {
    this.#log = log;
    this.#owner = owner;
    this.taskId = taskId;
  }

  get #ids() {
    return { taskId: this.taskId, contextId: 'c' };
  }

  async create(): Promise<void> {
    const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const task = { id: this.taskId, contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' as const }, history: [message] };
    await this.#store({
      kind: 'task.created',
      at: Date.now(),
      generation: 1,
      event: { task },
      role: 'agent.a',
      profile: 'transparent',
      ...(this.#owner && { owner: this.#owner }),
    });
  }

  async status(state: TaskState): Promise<void> {
    const event = { statusUpdate: { ...this.#ids, status: { state } } };
    await this.#store({ kind: 'status.changed', at: Date.now(), generation: this.#aggregate!.generation + 1, event });
  }

  /** A chunk of text; the first one opens its lane. */
  async text(text: string, lastChunk = false): Promise<void> {
    const artifact = { artifactId: 'a', name: 'response', parts: [{ text }] };
    const append = this.#aggregate!.lanes.a?.phase === 'open';
    const lane = {
      kind: 'lane.opened',
      at: Date.now(),
      lane: 'a',
      producer: 'agent',
      artifact: { name: 'response' },
      attempt: 1,
    } as const;
    if (this.#aggregate!.lanes.a === undefined) await this.#store(lane);
    const event: Extract<StreamResponse, { artifactUpdate: unknown }> = {
      artifactUpdate: { ...this.#ids, artifact, append, lastChunk },
    };
    const generation = this.#aggregate!.generation + 1;
    await this.#store({ kind: 'artifact.updated', at: Date.now(), generation, event, lane: 'a', producer: 'agent', attempt: 1 });
  }

  async #store(fact: Fact): Promise<void> {
    this.#aggregate = evolve(this.#aggregate, fact);
    const start = { startSeq: this.#startSeq, startStoredAt: 0 };
    const record = { v: 1 as const, facts: [fact], aggregate: this.#aggregate, ...start };
    const { seq } = await this.#log.facts.append(record, { expected: this.#seq, id: `${this.taskId}:${this.#seq}` });
    this.#seq = seq;
    this.#startSeq ||= seq;
  }
}
