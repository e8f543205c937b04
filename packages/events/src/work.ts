import type { Message, Metadata } from '@hopline/a2a';
import type { WorkingCall } from './call.ts';
import type { FactRecord } from './facts.ts';
import type { ProfileName } from './inputs.ts';
import type { Owner } from './owner.ts';
import type { AgentPresentation } from './presentation.ts';

/** An item of work for one worker, as stored on `a2a.work.<role>.<taskId>`. PROTOCOL.md section 6. */
export type Work = {
  v: 1;
  taskId: string;
  contextId: string;
  /** The turn to which this work belongs. If a worker finds that the task has ended or is at a later turn, it drops the item. */
  turn: number;
  profile: ProfileName;
  /** Set when a supervisor delegates. Absent when the task was addressed to this role directly. */
  call?: WorkCall;
  message: Message;
  /** Owner of the task. Clients choose context ids, so two owners may have chosen the same one. */
  owner?: Owner;
  /** Request-level metadata of the client, without the reserved keys. */
  metadata?: Metadata;
  /** The newest record of the task that the requester knew, unless it is large. With it, a fresh item needs no read of the log. */
  newest?: { seq: number; record: FactRecord };
  /** Epoch milliseconds at which the item was queued; absent from items of an earlier version. */
  queuedAt?: number;
};

export type WorkCall = {
  /** Call id. It is the producer id of the agent's inputs, and the key that pairs the start of a call with its end. */
  id: string;
  /** How the agent's work is presented to clients. */
  presentation: AgentPresentation;
  /** `resume` of the interrupted call that this one continues. */
  resume?: unknown;
};

/** The work item of a call, without the members that depend on when it is queued. */
export function workOfCall(
  { taskId, contextId, turn, profile, owner }: Pick<Work, 'taskId' | 'contextId' | 'turn' | 'profile' | 'owner'>,
  { call, presentation, message, metadata, resume }: WorkingCall,
): Work {
  return {
    v: 1,
    taskId,
    contextId,
    turn,
    profile,
    call: { id: call, presentation, ...(resume !== undefined && { resume }) },
    message,
    ...(metadata && { metadata }),
    ...(owner && { owner }),
  };
}
