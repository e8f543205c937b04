import type { TaskState } from '../types.ts';

const WIRE = {
  TASK_STATE_SUBMITTED: 'submitted',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_REJECTED: 'rejected',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_AUTH_REQUIRED: 'auth-required',
} as const satisfies Record<TaskState, string>;

const CANONICAL = new Map<string, TaskState>(Object.entries(WIRE).map(([state, wire]) => [wire, state as TaskState]));

export function encodeState(state: TaskState): string {
  return WIRE[state];
}

/**
 * Accepts the spellings in use: `input-required`, `input_required`, `cancelled` with two L (0.3 gRPC and REST), `TASK_STATE_…`.
 * undefined for `unknown`, which 0.3 defines and nothing may emit, and for everything else.
 */
export function decodeState(value: unknown): TaskState | undefined {
  if (typeof value !== 'string') return undefined;
  const state = CANONICAL.get(value);
  if (state !== undefined) return state;
  const wire = value
    .toLowerCase()
    .replace(/^task_state_/, '')
    .replaceAll('_', '-')
    .replace('cancelled', 'canceled');
  return CANONICAL.get(wire);
}
