import type { Message } from '@hopline/a2a';
import type { AgentInput, Owner, Producer, ProfileName, Role } from '@hopline/events';
import type { StoredFacts } from '@hopline/log';
import type { MemoryLog } from '@hopline/log/memory';
import { type Command, decide, evolve, ROOT_AGENT, SUPERVISOR } from '@hopline/task';

export type TaskOptions = {
  text: string;
  contextId?: string;
  role?: Role;
  profile?: ProfileName;
  owner?: Owner;
  earlierTasks?: string[];
};

export const user = (text: string, messageId: string): Message => ({ messageId, role: 'ROLE_USER', parts: [{ text }] });

/** A task written to a log with the real rules, one record per command. */
export class LoggedTask {
  readonly taskId: string;
  readonly #log: MemoryLog;
  readonly #root: string;
  #newest: StoredFacts | undefined;
  #turn = 1;

  private constructor(log: MemoryLog, taskId: string, root: string) {
    this.#log = log;
    this.taskId = taskId;
    this.#root = root;
  }

  static async begin(log: MemoryLog, taskId: string, options: TaskOptions): Promise<LoggedTask> {
    const { text, contextId = 'c1', role = 'supervisor', profile = 'caipe', ...more } = options;
    const task = new LoggedTask(log, taskId, role === 'supervisor' ? SUPERVISOR : ROOT_AGENT);
    const message = user(text, `${taskId}-m1`);
    await task.#store({ kind: 'client', taskId, input: { kind: 'message', message, contextId, role, profile, ...more } });
    return task;
  }

  get newest(): StoredFacts {
    return this.#newest!;
  }

  /** An input of the root producer, or of the producer of a call. */
  async input(input: Exclude<AgentInput, { kind: 'text' }>, producer = this.#root): Promise<this> {
    return this.#store({ kind: 'agent', from: this.#from(producer), input });
  }

  /** A whole artifact, as one run of text in a lane of its own. */
  async artifact(name: string, text: string, lane = name): Promise<this> {
    const from = this.#from(this.#root);
    const chunk = { firstSeq: 1, lastSeq: 1, count: 1, n: 1, reason: 'test', heldMs: 0, firstAt: 0, lastAt: 0 };
    const open = { kind: 'open', lane: `${this.#turn}/${lane}`, artifact: { name } } as const;
    await this.#store({ kind: 'agent', from, input: open });
    return this.#store({ kind: 'run', from, lane: open.lane, text, last: true, n: 1, chunk });
  }

  async end(state: 'COMPLETED' | 'FAILED' | 'CANCELED' | 'INPUT_REQUIRED', text?: string, resume?: unknown): Promise<this> {
    const message: Message = { messageId: `${this.taskId}-end-${this.#turn}`, role: 'ROLE_AGENT', parts: [{ text: text ?? '' }] };
    const details = { ...(text !== undefined && { message }), ...(resume !== undefined && { resume }) };
    return this.input({ kind: 'status', state: `TASK_STATE_${state}`, ...details });
  }

  async message(text: string): Promise<this> {
    const { contextId, role, profile } = this.newest.record.aggregate;
    this.#turn += 1;
    const message = user(text, `${this.taskId}-m${this.#turn}`);
    const input = { kind: 'message', message, contextId, role, profile } as const;
    return this.#store({ kind: 'client', taskId: this.taskId, input });
  }

  #from(id: string): Producer {
    return { id, agent: 'echo', turn: this.#turn, attempt: 1 };
  }

  async #store(command: Command): Promise<this> {
    const before = this.#newest?.record.aggregate;
    const { facts, rejected } = decide(before, command, Date.now());
    if (rejected !== undefined) throw new Error(`rejected: ${rejected}`);
    const aggregate = facts.reduce(evolve, before)!;
    const startSeq = this.#newest?.record.startSeq || (this.#newest?.seq ?? 0);
    const record = { v: 1 as const, facts, aggregate, startSeq, startStoredAt: 0 };
    const id = `${this.taskId}:${aggregate.generation}:${Math.random()}`;
    const { seq } = await this.#log.facts.append(record, { expected: this.#newest?.seq ?? 0, id });
    this.#newest = { seq, record };
    return this;
  }
}
