import { A2AError } from '@hopline/a2a';
import { type A2AServer, fromLog, partyOf, requireOwnTask } from '@hopline/a2a-server';
import { type Cursor, type Owner, parseCursor } from '@hopline/events';
import type { FastifyInstance } from 'fastify';
import { registerHoplineRoute } from './hopline-route.ts';

export const TASK_AUDIT_PATH = '/tasks/{taskId}/audit';
export const EVENT_AUDIT_PATH = '/tasks/{taskId}/audit/{cursor}';

/**
 * Audits that run at the same time in this process; further ones get 503 with Retry-After. Those of a tenant, or of a caller without one, run one after
 * the other, because they must not block others.
 */
const AUDITS_AT_ONCE_MAX = 2;
/**
 * Maximum number of audits of a tenant, or of a caller without one, that run or wait; further ones get 429. The page of a task requests
 * two, that of a comparison four.
 */
export const PARTY_AUDITS_MAX = 8;

/** Counts bytes that an audit has read from the log. */
type CountRead = (bytes: number) => void;

/** Reads audits from the log. Both methods may throw A2AError and errors of the log. */
export type TaskAudits = {
  /** Resolves with undefined for an unknown task. */
  report: (taskId: string, countRead: CountRead) => Promise<object | undefined>;
  /** Explains where the event of a cursor comes from. Resolves with undefined when the task has no such event. */
  explain: (taskId: string, cursor: Cursor, countRead: CountRead) => Promise<object | undefined>;
};

/** Work that runs one after the other for each party. */
class PartyTurns {
  readonly #parties = new Map<string, { count: number; last: Promise<void> }>();

  count(party: string): number {
    return this.#parties.get(party)?.count ?? 0;
  }

  async run<T>(party: string, work: () => Promise<T>): Promise<T> {
    const turns = this.#parties.get(party) ?? { count: 0, last: Promise.resolve() };
    this.#parties.set(party, turns);
    const before = turns.last;
    const over = Promise.withResolvers<void>();
    turns.last = over.promise;
    turns.count += 1;
    try {
      await before;
      return await work();
    } finally {
      turns.count -= 1;
      if (turns.count === 0) this.#parties.delete(party);
      over.resolve();
    }
  }
}

/**
 * Two routes for the task's owner: GET `/tasks/{taskId}/audit` reports where a task spent its time and whether anything was lost, and GET
 * `/tasks/{taskId}/audit/{cursor}` reports where one event comes from.
 */
export function registerTaskAudit(scope: FastifyInstance, server: A2AServer, audits: TaskAudits): void {
  let running = 0;
  const turns = new PartyTurns();
  const run = async (caller: Owner, taskId: string, read: (countRead: CountRead) => Promise<object>): Promise<object> => {
    const party = partyOf(caller);
    if (party === undefined) return readWithin(taskId, () => read(() => {}));
    if (turns.count(party) >= PARTY_AUDITS_MAX) {
      server.quotas.countRefusal(caller, 'audits');
      throw new A2AError('QUOTA_EXCEEDED', { detail: 'too many audits of this caller or its tenant are running; retry later' });
    }
    return turns.run(party, () => {
      // The audits before this one may have used up the budget.
      server.quotas.requireSentRoom(caller);
      const budget = server.quotas.sentBudget(caller);
      return readWithin(taskId, () => read(bytes => void budget?.spend(bytes, performance.now())));
    });
  };
  const readWithin = async (taskId: string, read: () => Promise<object>): Promise<object> => {
    if (running >= AUDITS_AT_ONCE_MAX)
      throw new A2AError('UNAVAILABLE', { detail: `${AUDITS_AT_ONCE_MAX} audits are running; retry later` });
    running += 1;
    try {
      return await read();
    } catch (thrown) {
      throw fromLog(thrown, taskId);
    } finally {
      running -= 1;
    }
  };
  registerHoplineRoute(scope, server, { path: TASK_AUDIT_PATH, method: 'audit_task' }, async (caller, { taskId = '' }) => {
    await requireOwnTask(server, caller, taskId);
    return run(caller, taskId, async countRead => {
      const found = await audits.report(taskId, countRead);
      // Retention has removed the task since its owner was checked.
      if (found === undefined) throw new A2AError('TASK_NOT_FOUND');
      return found;
    });
  });
  registerHoplineRoute(
    scope,
    server,
    { path: EVENT_AUDIT_PATH, method: 'explain_event' },
    async (caller, { taskId = '', cursor: text = '' }) => {
      await requireOwnTask(server, caller, taskId);
      const cursor = parseCursor(text);
      if (cursor === undefined)
        throw new A2AError('INVALID_PARAMS', { taskId, detail: 'the cursor is not of the form GENERATION.SEQUENCE' });
      return run(caller, taskId, async countRead => {
        const found = await audits.explain(taskId, cursor, countRead);
        if (found === undefined)
          throw new A2AError('INVALID_PARAMS', { taskId, detail: `the task has no event of generation ${cursor.generation}` });
        return found;
      });
    },
  );
}
