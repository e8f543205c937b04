import type { TaskState } from '@hopline/a2a';
import { contextIdOf } from '@hopline/events';
import type { Copy } from './copied-task.ts';

/** Tasks of the caller whose lists are measured, however many others are stored. A log of fewer tasks has only tasks of this caller. */
export const CALLER_TASKS = 1_000;
/** Tasks of each context of the caller. */
export const CONTEXT_TASKS = 10;
/** Every tenth task of the caller has failed. */
const FAILED_EVERY = 10;
/** Distance between the ends of tasks: a million in six days, within the default retention. */
const APART_MS = 500;

/** The subject of a caller. All subjects have the same length, so that all records have the same size. */
const callerName = (n: number): string => `caller-${`${n}`.padStart(6, '0')}`;
/** Its tasks are copied. */
export const COPIED_CALLER = callerName(0);
export const CALLER = callerName(1);
/** Half of all other tasks. */
export const LARGE_CALLER = callerName(2);

/**
 * Task `k` of `total`, oldest first. The tasks of the caller are spread evenly among the others, like those of a real user, so neighbors in
 * a list are far apart in the log. Half of the others belong to one caller, the rest to callers of a thousand tasks each.
 */
export function populationTask(k: number, total: number, untilMs: number): Copy {
  const stride = strideOf(total);
  const endedAt = untilMs - (total - k) * APART_MS;
  const taskId = taskIdOf(k, endedAt);
  const messageId = taskId.replace('-7', '-4');
  if (k % stride !== 0) {
    const others = Math.max(1, Math.ceil(total / 2 / CALLER_TASKS));
    const subject = k % 2 === 1 ? LARGE_CALLER : callerName(3 + ((k >> 1) % others));
    return { taskId, contextId: contextIdOf(taskId)!, messageId, subject, endedAt, state: 'TASK_STATE_COMPLETED' };
  }
  const n = k / stride;
  const first = (n - (n % CONTEXT_TASKS)) * stride;
  const contextId = contextIdOf(taskIdOf(first, untilMs - (total - first) * APART_MS))!;
  const state: TaskState = n % FAILED_EVERY === 0 ? 'TASK_STATE_FAILED' : 'TASK_STATE_COMPLETED';
  return { taskId, contextId, messageId, subject: CALLER, endedAt, state };
}

const strideOf = (total: number): number => Math.max(1, Math.floor(total / CALLER_TASKS));

/** Task `n` of the caller, oldest first. */
export function callerTask(n: number, total: number, untilMs: number): Copy {
  return populationTask(n * strideOf(total), total, untilMs);
}

/** Number of the caller's tasks. */
export function callerTasks(total: number): number {
  return Math.ceil(total / strideOf(total));
}

/** A UUID of version 7, as a server makes them, that contains the number of the task. */
function taskIdOf(k: number, endedAt: number): string {
  const time = endedAt.toString(16).padStart(12, '0');
  const number = k.toString(16).padStart(6, '0');
  // Spreads ids over the shards as random ones would be.
  const mixed = (Math.imul(k + 1, 0x9e3779b1) >>> 0).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${number.slice(0, 3)}-8${number.slice(3)}-${mixed}`;
}
