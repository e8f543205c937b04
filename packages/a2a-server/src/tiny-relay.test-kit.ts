import type { Message } from '@hopline/a2a';
import type { AgentInput, Producer, TaskAggregate } from '@hopline/events';
import { putTask } from '@hopline/log';
import type { MemoryLog } from '@hopline/log/memory';
import { StoredScenario } from '@hopline/task/test-kit';

/** The smallest possible relay for tests, with the real rules and no timers. Turns inputs into facts. */
export class TinyRelay {
  readonly #log: MemoryLog;
  readonly #tasks = new Map<string, StoredScenario>();
  /** Called when a message or cancel of a client has been accepted. */
  onClient: (taskId: string, aggregate: TaskAggregate) => Promise<void> | void = () => {};
  /** While false, inputs wait in the log. */
  running = true;
  #resume: (() => void) | undefined;

  constructor(log: MemoryLog) {
    this.#log = log;
  }

  async run(signal: AbortSignal): Promise<void> {
    for await (const { taskId, record, seq } of this.#log.inputs.readShard(0, 1, signal)) {
      if (!this.running)
        await new Promise<void>(resolve => {
          this.#resume = resolve;
        });
      if (record.from !== 'client') continue;
      const { input } = record;
      if (await this.#fold(taskId, task => task.when({ kind: 'client', taskId, input }), seq))
        void this.onClient(taskId, this.aggregate(taskId));
    }
  }

  resume(): void {
    this.running = true;
    this.#resume?.();
  }

  aggregate(taskId: string): TaskAggregate {
    return this.#tasks.get(taskId)!.aggregate!;
  }

  /** Stores the facts that follow from `command`, and the task's index entry. Returns false when the rules reject it. */
  async #fold(taskId: string, command: (task: StoredScenario) => void, raw?: number): Promise<boolean> {
    const task = this.#tasks.get(taskId) ?? new StoredScenario(this.#log.facts, taskId);
    this.#tasks.set(taskId, task);
    const before = task.facts.length;
    command(task);
    const facts = task.facts.slice(before);
    if (facts.length === 0) return false;
    if (raw !== undefined) task.aggregate = { ...task.aggregate!, foldedSeq: raw };
    const { contextId, role, state, generation, owner } = task.aggregate!;
    await task.store();
    const status = facts.findLast(fact => fact.kind === 'task.created' || fact.kind === 'status.changed');
    const startSeq = task.newest!.record.startSeq || task.newest!.seq;
    const entry = { contextId, role, state, generation, at: status?.at ?? 0, startSeq, ...(owner && { owner }) };
    if (status) await putTask(this.#log, taskId, entry);
    return true;
  }

  async publish(taskId: string, input: Exclude<AgentInput, { kind: 'text' }>): Promise<void> {
    await this.#fold(taskId, task => task.input(this.#from(taskId), input));
  }

  async openArtifact(taskId: string, lane: string, name = 'streaming_result'): Promise<void> {
    await this.publish(taskId, { kind: 'open', lane, artifact: { name, description: `Streaming result from ${lane}` } });
  }

  async text(taskId: string, lane: string, text: string, last = false): Promise<void> {
    await this.#fold(taskId, task => task.text(this.#from(taskId), lane, text, last));
  }

  async end(taskId: string, state: 'COMPLETED' | 'FAILED' | 'INPUT_REQUIRED' | 'AUTH_REQUIRED' = 'COMPLETED'): Promise<void> {
    const message: Message = {
      messageId: `ask-${taskId}-${this.aggregate(taskId).turn}`,
      role: 'ROLE_AGENT',
      parts: [{ text: 'Which one?' }],
    };
    const asks = state === 'INPUT_REQUIRED' || state === 'AUTH_REQUIRED';
    await this.publish(taskId, { kind: 'status', state: `TASK_STATE_${state}`, ...(asks && { message }) });
  }

  /** Completes the turn with an answer in chunks. */
  async answer(taskId: string, tokens: string[]): Promise<void> {
    await this.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    const lane = `l${this.aggregate(taskId).turn}`;
    await this.openArtifact(taskId, lane);
    for (const token of tokens) await this.text(taskId, lane, token);
    await this.end(taskId);
  }

  #from(taskId: string): Producer {
    const { turn, role } = this.aggregate(taskId);
    const [kind, agent = kind] = role.split('.') as [string, string?];
    return { id: kind, agent, turn, attempt: 1 };
  }
}
