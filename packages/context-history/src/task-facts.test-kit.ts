import type { Message, Metadata } from '@hopline/a2a';
import type { AgentInput, LaneArtifact, Owner, ProfileName, Role } from '@hopline/events';
import type { StoredFacts } from '@hopline/log';
import type { MemoryLog } from '@hopline/log/memory';
import { rootProducer } from '@hopline/task';
import { agent, StoredScenario } from '@hopline/task/test-kit';

type TaskOptions = {
  text: string;
  contextId?: string;
  role?: Role;
  profile?: ProfileName;
  owner?: Owner;
  earlierTasks?: string[];
  metadata?: Metadata;
};

export const user = (text: string, messageId: string): Message => ({ messageId, role: 'ROLE_USER', parts: [{ text }] });

/** A task written to a log with the real rules, one record per command. No command may be rejected. */
export class LoggedTask {
  readonly #task: StoredScenario;

  private constructor(log: MemoryLog, taskId: string) {
    this.#task = new StoredScenario(log.facts, taskId);
  }

  static async begin(log: MemoryLog, taskId: string, options: TaskOptions): Promise<LoggedTask> {
    const { text, role, profile, ...more } = options;
    const task = new LoggedTask(log, taskId);
    return task.#store(task.#task.message(text, `${taskId}-m1`, role, profile, more));
  }

  get newest(): StoredFacts {
    return this.#task.newest!;
  }

  /** An input of the root producer, or of the producer of a call. */
  async input(input: Exclude<AgentInput, { kind: 'text' }>, producer?: string): Promise<this> {
    return this.#store(this.#task.input(this.#from(producer), input));
  }

  /** A whole artifact, as one run of text in its own lane. */
  async artifact(header: string | LaneArtifact, text: string, lane?: string): Promise<this> {
    const artifact = typeof header === 'string' ? { name: header } : header;
    const ofTurn = `${this.#task.aggregate!.turn}/${lane ?? artifact.name}`;
    await this.#store(this.#task.open(this.#from(), ofTurn, artifact));
    return this.#store(this.#task.text(this.#from(), ofTurn, text, true));
  }

  async end(state: 'COMPLETED' | 'FAILED' | 'CANCELED' | 'INPUT_REQUIRED', text?: string, resume?: unknown): Promise<this> {
    const { taskId, aggregate } = this.#task;
    const message: Message = { messageId: `${taskId}-end-${aggregate!.turn}`, role: 'ROLE_AGENT', parts: [{ text: text ?? '' }] };
    const details = { ...(text !== undefined && { message }), ...(resume !== undefined && { resume }) };
    return this.input({ kind: 'status', state: `TASK_STATE_${state}`, ...details });
  }

  async message(text: string): Promise<this> {
    const { taskId, aggregate } = this.#task;
    return this.#store(this.#task.message(text, `${taskId}-m${aggregate!.turn + 1}`));
  }

  #from(id = rootProducer(this.#task.aggregate!)) {
    const { turn, calls, role } = this.#task.aggregate!;
    return { ...agent(id, 1, turn), agent: calls[id]?.agent ?? role.replace(/^agent\./, '') };
  }

  async #store(task: StoredScenario): Promise<this> {
    const [rejected] = task.rejected;
    if (rejected !== undefined) throw new Error(`rejected: ${rejected}`);
    await task.store();
    return this;
  }
}
