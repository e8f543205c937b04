import { type Fact, forkPointOf, isSameOwner, type TaskAggregate } from '@hopline/events';
import { BoundedMap, type FactLog, readTask, type StoredFacts } from '@hopline/log';

/** Number of tasks for which a permission to read is remembered: more than run at once, and about 4 MB. */
const READABLE_MAX = 32_768;
/** Tasks that agents may not read, with the newest record at the time of the refusal. */
const REFUSED_MAX = 4_096;

/**
 * Decides which tasks an agent may read: those of its own clients, those in which it was called, and the earlier tasks of their
 * conversations. A permission is never withdrawn, so it can be remembered.
 */
export class ReadRights {
  readonly #facts: Pick<FactLog, 'last' | 'read'>;
  readonly #readable = new BoundedMap<string, true>(READABLE_MAX);
  readonly #refused = new BoundedMap<string, number>(REFUSED_MAX);

  constructor(facts: Pick<FactLog, 'last' | 'read'>) {
    this.#facts = facts;
  }

  /** Whether the answer is known without reading the log. */
  isKnown(agent: string, taskId: string): boolean {
    return this.#readable.has(keyOf(agent, taskId));
  }

  /** Whether this record, or an earlier one, has shown that the agent may read its task. */
  permits(agent: string, aggregate: TaskAggregate): boolean {
    const isPermitted = this.isKnown(agent, aggregate.taskId) || isOf(agent, aggregate);
    if (isPermitted) this.#readable.set(keyOf(agent, aggregate.taskId), true);
    return isPermitted;
  }

  /**
   * False for a task that has no records. Rejects with LogUnavailable. `by`: as in ReadRequest. `newest`: the task's newest record, if the
   * caller has just read it.
   */
  async mayRead(
    agent: string,
    taskId: string,
    { by = [], newest: read }: { by?: readonly string[]; newest?: StoredFacts } = {},
  ): Promise<boolean> {
    if (this.isKnown(agent, taskId)) return true;
    const newest = read ?? (await this.#facts.last(taskId));
    if (newest === undefined) return false;
    const isPermitted = (await this.#isOwn(agent, newest)) || (await this.#isReachedBy(agent, newest, by));
    if (isPermitted) this.#readable.set(keyOf(agent, taskId), true);
    return isPermitted;
  }

  /** Whether the agent serves the task, or was called in it. */
  async #isOwn(agent: string, newest: StoredFacts): Promise<boolean> {
    const { aggregate } = newest.record;
    const { taskId, turn } = aggregate;
    if (isOf(agent, aggregate)) return true;
    // The aggregate has the calls of the current turn only.
    if (turn === 1 || this.#refused.get(keyOf(agent, taskId)) === newest.seq) return false;
    for await (const { record } of readTask(this.#facts, newest))
      if (record.facts.some(fact => isCallOf(agent, fact))) return true;
    this.#refused.set(keyOf(agent, taskId), newest.seq);
    return false;
  }

  /**
   * Whether the path leads from a task of the agent to this one. Each task on it must be in the same conversation as the previous one, or
   * be the origin of its fork.
   */
  async #isReachedBy(agent: string, target: StoredFacts, [first, ...rest]: readonly string[]): Promise<boolean> {
    if (first === undefined || !(await this.mayRead(agent, first))) return false;
    let from = await this.#facts.last(first);
    for (const taskId of rest) {
      const to = await this.#facts.last(taskId);
      if (from === undefined || to === undefined || !(await this.#isStep(from, to))) return false;
      from = to;
    }
    return from !== undefined && this.#isStep(from, target);
  }

  async #isStep(from: StoredFacts, to: StoredFacts): Promise<boolean> {
    const { aggregate } = from.record;
    const { aggregate: target } = to.record;
    if (!isSameOwner(aggregate.owner, target.owner) || aggregate.role !== target.role) return false;
    return aggregate.contextId === target.contextId || (await this.#originOf(from)) === target.taskId;
  }

  async #originOf(newest: StoredFacts): Promise<TaskAggregate['taskId'] | undefined> {
    for await (const { record } of readTask(this.#facts, newest)) {
      const created = record.facts.find(fact => fact.kind === 'task.created');
      if (created === undefined) return undefined;
      const fork = forkPointOf(created.request);
      return fork === 'malformed' ? undefined : fork?.taskId;
    }
    return undefined;
  }
}

/** Whether the agent serves the task, or is called in its current turn. */
function isOf(agent: string, { role, calls }: TaskAggregate): boolean {
  return role === `agent.${agent}` || Object.values(calls).some(call => call.agent === agent);
}

const keyOf = (agent: string, taskId: string): string => `${agent} ${taskId}`;

function isCallOf(agent: string, fact: Fact): boolean {
  return (fact.kind === 'call.started' || fact.kind === 'call.ended') && fact.agent === agent;
}
