import { isObject } from '@hopline/a2a';
import { CANCEL_TRY_MS_MAX, type CancelRequest, type Turn } from '@hopline/agent';
import { AgentFault } from './options.ts';
import type { RemoteClient } from './remote-client.ts';

/** What a later attempt needs to cancel the agent's task (`Agent.cancelRemoteRun`). */
export type RemoteRun = { taskId: string };

/** Undefined for what another adapter has stored: an operator may change the adapter of an agent while its tasks go on. */
export function taskIdOf(run: unknown): string | undefined {
  return isObject(run) && typeof run.taskId === 'string' ? run.taskId : undefined;
}

/**
 * One tasks/cancel. Every answer counts, an error too: the task is not known any more, or has ended. Repeated are what a server or a proxy
 * answers while it restarts, and silence.
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
