import type { TaskState } from '@hopline/a2a';
import type { Owner } from '@hopline/events';
import type { Log } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import { agent, StoredScenario } from '@hopline/task/test-kit';

const LANE = 'a';

/** Appends the facts of one task in which an agent works, with one event per record. */
export class TaskFacts {
  readonly #task: StoredScenario;
  readonly #owner: Owner | undefined;

  constructor(log: Log, taskId: string, owner?: Owner) {
    this.#task = new StoredScenario(log.facts, taskId);
    this.#owner = owner;
  }

  async create(): Promise<void> {
    await this.#task.message('hi', 'm', 'agent.argocd', 'transparent', this.#owner && { owner: this.#owner }).store();
  }

  /** Appends exactly one event, because the rules would also pass through intermediate states and close the lane. */
  async status(state: TaskState): Promise<void> {
    const { taskId, contextId, generation } = this.#task.aggregate!;
    const event = { statusUpdate: { taskId, contextId, status: { state } } };
    await this.#task.given({ kind: 'status.changed', at: Date.now(), generation: generation + 1, event }).store();
  }

  /** Appends a chunk of text. The first one opens its lane. */
  async text(text: string, lastChunk = false): Promise<void> {
    const from = agent(ROOT_AGENT);
    if (this.#task.aggregate!.lanes[LANE] === undefined) await this.#task.open(from, LANE, { name: 'response' }).store();
    await this.#task.text(from, LANE, text, lastChunk).store();
  }
}
