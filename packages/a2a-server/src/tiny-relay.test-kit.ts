import type { Message } from '@hopline/a2a';
import type { AgentInput, Fact, TaskAggregate } from '@hopline/events';
import type { MemoryLog } from '@hopline/log/memory';
import { type Command, decide, evolve } from '@hopline/task';

/** For tests: the smallest relay, with the real rules and no timers. Turns inputs into facts. */
export class TinyRelay {
  readonly #log: MemoryLog;
  readonly #tasks = new Map<string, { aggregate: TaskAggregate; seq: number; first: number }>();
  /** Called when a client's message or cancel has been accepted. */
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
      const took = await this.decide(taskId, { kind: 'client', taskId, input: record.input }, seq);
      if (took) void this.onClient(taskId, this.aggregate(taskId));
    }
  }

  resume(): void {
    this.running = true;
    this.#resume?.();
  }

  aggregate(taskId: string): TaskAggregate {
    return this.#tasks.get(taskId)!.aggregate;
  }

  /** Appends the facts of a command; false when the rules reject it. */
  async decide(taskId: string, item: Command, raw?: number): Promise<boolean> {
    const known = this.#tasks.get(taskId);
    const { facts } = decide(known?.aggregate, item, Date.now());
    if (facts.length === 0) return false;
    await this.append(taskId, facts, raw);
    return true;
  }

  async append(taskId: string, facts: Fact[], raw?: number): Promise<void> {
    const known = this.#tasks.get(taskId);
    let aggregate = known?.aggregate;
    for (const fact of facts) aggregate = evolve(aggregate, fact);
    const next = { ...aggregate!, foldedSeq: raw ?? aggregate!.foldedSeq };
    const first = known?.first ?? 0;
    const { seq } = await this.#log.facts.append(
      { v: 1, facts, aggregate: next, startSeq: first, startStoredAt: 0 },
      { expected: known?.seq ?? 0, id: `${taskId}:${next.generation}:${next.foldedSeq}:${next.at}:${Math.random()}` },
    );
    this.#tasks.set(taskId, { aggregate: next, seq, first: first || seq });
    const status = facts.findLast(fact => fact.kind === 'task.created' || fact.kind === 'status.changed');
    if (status === undefined) return;
    const { contextId, role, state, generation } = next;
    await this.#log.tasks.put(taskId, { contextId, role, state, generation, at: status.at, startSeq: first || seq });
  }

  async publish(taskId: string, input: Exclude<AgentInput, { kind: 'text' }>): Promise<void> {
    await this.decide(taskId, { kind: 'agent', from: this.#from(taskId), input });
  }

  async openArtifact(taskId: string, lane: string, name = 'streaming_result'): Promise<void> {
    await this.publish(taskId, { kind: 'open', lane, artifact: { name, description: `Streaming result from ${lane}` } });
  }

  async text(taskId: string, lane: string, text: string, last = false): Promise<void> {
    const now = Date.now();
    const chunk = { firstSeq: 1, lastSeq: 1, count: 1, n: 1, reason: 'ready', heldMs: 0, firstAt: now, lastAt: now };
    await this.decide(taskId, { kind: 'run', from: this.#from(taskId), lane, text, last, n: 1, chunk });
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

  #from(taskId: string) {
    const { turn, role } = this.aggregate(taskId);
    return { id: role === 'supervisor' ? 'supervisor' : 'agent', agent: 'supervisor', turn, attempt: 1 };
  }
}
