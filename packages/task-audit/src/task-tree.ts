import { isObject } from '@hopline/a2a';
import type { ProducerActivity } from './producers.ts';
import type { TaskReport } from './task-report.ts';

/** Levels of tasks below a task that are read. */
export const TREE_LEVELS_MAX = 4;
/** Maximum number of tasks below a task that are read. Each requires an audit from another cluster. */
export const TREE_TASKS_MAX = 64;

/** A task that an agent's server ran for a turn of the task above it. Numbers and names, never text. */
export type TaskBelow = {
  /** Name of the agent in the cluster of the task above. */
  agent: string;
  /** Turn and attempt of the task above. */
  turn: number;
  attempt: number;
  /** Id at the agent's server. */
  taskId: string;
  /** The page of the agent's server, which links to its console; absent unless the reader knows the address. */
  url?: string;
  /** Present if the agent is a cluster of Hopline whose audit the reader may read. */
  audited?: { state: string; startedAt: number; durationMs: number; tokens: number };
  /** The reason why the task could not be read. */
  fault?: string;
  below: TaskBelow[];
};

/** The address of an agent and the audit of one of its tasks, or the reason why the reader has no audit. */
export type AgentTask = { url?: string; report?: object; fault?: string };

/** Reads a task of the agent with this name. Never rejects for an agent that is not a cluster or cannot be reached. */
export type ReadAgentTask = (agent: string, taskId: string) => Promise<AgentTask>;

/** The tasks below a task, and those below them, in the order in which their attempts began. */
export async function tasksBelow(report: Pick<TaskReport, 'producers'>, read: ReadAgentTask): Promise<TaskBelow[]> {
  let left = TREE_TASKS_MAX;
  const level = async (producers: readonly ProducerActivity[], depth: number): Promise<TaskBelow[]> => {
    const tasks: TaskBelow[] = [];
    for (const { agent, turn, attempt, remoteTaskId: taskId } of producers) {
      if (typeof taskId !== 'string') continue;
      if (left === 0) return tasks;
      left -= 1;
      const { url, report: found, fault = 'the cluster did not answer with an audit' } = await read(agent, taskId);
      const at = { agent, turn, attempt, taskId, ...(url !== undefined && { url }) };
      if (found === undefined || !isReport(found)) {
        tasks.push({ ...at, fault, below: [] });
        continue;
      }
      const below = depth < TREE_LEVELS_MAX ? await level(found.producers, depth + 1) : [];
      tasks.push({ ...at, audited: summaryOf(found), below });
    }
    return tasks;
  };
  return level(report.producers ?? [], 1);
}

function summaryOf({ state, startedAt, events, producers }: TaskReport): NonNullable<TaskBelow['audited']> {
  const tokens = producers.reduce((sum, producer) => sum + producer.tokens, 0);
  return { state, startedAt, durationMs: events.at(-1)?.atMs ?? 0, tokens };
}

/** Another server may answer with any JSON. */
function isReport(answer: object): answer is TaskReport {
  const { state, startedAt, events, producers } = answer as Partial<TaskReport>;
  const isList = [events, producers].every(list => Array.isArray(list) && list.every(isObject));
  return typeof state === 'string' && Number.isFinite(startedAt) && isList;
}
