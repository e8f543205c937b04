import { isInProgress, isTerminal, type TaskState } from '@hopline/a2a';

const ENDS_EARLY = ['TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'] as const;

/** The life of a task: the states that may follow each state ([A2A 1.0] 4.1.3). Working may follow itself, to deliver a message. */
const NEXT: Readonly<Record<TaskState, readonly TaskState[]>> = {
  TASK_STATE_SUBMITTED: ['TASK_STATE_WORKING', ...ENDS_EARLY],
  TASK_STATE_WORKING: [
    'TASK_STATE_WORKING',
    'TASK_STATE_INPUT_REQUIRED',
    'TASK_STATE_AUTH_REQUIRED',
    'TASK_STATE_COMPLETED',
    ...ENDS_EARLY,
  ],
  TASK_STATE_INPUT_REQUIRED: ['TASK_STATE_WORKING', ...ENDS_EARLY],
  TASK_STATE_AUTH_REQUIRED: ['TASK_STATE_WORKING', ...ENDS_EARLY],
  TASK_STATE_COMPLETED: [],
  TASK_STATE_FAILED: [],
  TASK_STATE_CANCELED: [],
  TASK_STATE_REJECTED: [],
};

export function allows(from: TaskState, to: TaskState): boolean {
  return NEXT[from].includes(to);
}

/**
 * The states to pass through, `to` last; empty if no legal path leads there. Only `working` leads to `completed` and to the interrupted
 * states. It is inserted for a source that skips it, because real agents complete tasks that they never reported as working, and ask twice
 * without working in between.
 */
export function pathTo(from: TaskState, to: TaskState): TaskState[] {
  if (allows(from, to)) return [to];
  if (isTerminal(from)) return [];
  return isInProgress(to) ? [] : ['TASK_STATE_WORKING', to];
}
