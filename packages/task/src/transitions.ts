import { isInterrupted, isTerminal, type TaskState } from '@hopline/a2a';

/**
 * The life of a task (S3-5, with `rejected` and `auth-required` added, C-15). Nothing leaves a terminal state.
 * Only `working` leads to `completed` and to the interrupted states; a source that skips it is bridged, never refused (see `pathTo`).
 */
export function allows(from: TaskState, to: TaskState): boolean {
  if (isTerminal(from)) return false;
  switch (to) {
    case 'TASK_STATE_SUBMITTED':
      return false;
    case 'TASK_STATE_WORKING':
    case 'TASK_STATE_FAILED':
    case 'TASK_STATE_CANCELED':
    case 'TASK_STATE_REJECTED':
      return true;
    case 'TASK_STATE_COMPLETED':
    case 'TASK_STATE_INPUT_REQUIRED':
    case 'TASK_STATE_AUTH_REQUIRED':
      return from === 'TASK_STATE_WORKING';
  }
}

/** The states to pass through, `to` last. Agents in the field complete a task they never called working: the log still shows a legal life. */
export function pathTo(from: TaskState, to: TaskState): TaskState[] {
  if (allows(from, to)) return [to];
  if (isTerminal(from)) return [];
  return isTerminal(to) || isInterrupted(to) ? ['TASK_STATE_WORKING', to] : [];
}
