import { DIALECTS, type Dialect, isLegacyTask, type Task } from '@hopline/a2a';
import { ATTR } from '@hopline/telemetry';
import type { OperationContext } from '../a2a-server.ts';

/**
 * The dialect to answer in, once the task is known. `tasks/get`, `tasks/cancel` and `tasks/resubscribe` are the same in 0.3 and in the legacy form: a request that
 * names no version gets the form that created the task.
 */
export function dialectFor(context: OperationContext, task: Task): Dialect {
  if (context.ambiguous !== true || !isLegacyTask(task)) return context.dialect;
  context.hop.set({ [ATTR.a2aVersion]: DIALECTS.legacy.name });
  return DIALECTS.legacy;
}
