import { isObject } from '@hopline/a2a';
import { CANCEL_TRY_MS_MAX, type CancelRequest, type Turn } from '@hopline/agent';
import { AgentFault } from './agent-fault.ts';
import type { RemoteClient } from './remote-client.ts';

/** State that a later attempt needs to cancel the agent's task (`Agent.cancelRemoteRun`). */
export type RemoteRun = { taskId: string };

/** Undefined for the state of another adapter, because an operator may change an agent's adapter while its tasks run. */
export function taskIdOf(run: unknown): string | undefined {
  return isObject(run) && typeof run.taskId === 'string' ? run.taskId : undefined;
}

/**
 * Sends tasks/cancel. Any answer is final, even an error, which means that the task is unknown or has ended. The request is repeated only
 * if there is no answer, or an answer that a server or proxy sends while it restarts.
 */
export function cancelRequest(client: RemoteClient, taskId: string, trace: Turn['trace']): CancelRequest {
  return async signal => {
    try {
      const response = await client.call('cancel', { id: taskId }, { signal, trace, totalMsMax: CANCEL_TRY_MS_MAX });
      if ('error' in response && response.error.retryable)
        throw new AgentFault(`the agent answered with error ${response.error.code}`, true);
    } catch (error) {
      if (!(error instanceof AgentFault) || error.retryable || error.isDeadline) throw error;
    }
  };
}
