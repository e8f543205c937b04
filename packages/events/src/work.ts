import type { Message, Metadata } from '@hopline/a2a';
import type { ProfileName } from './inputs.ts';
import type { Owner } from './owner.ts';
import type { AgentPresentation } from './presentation.ts';

/** A part of a task for one worker, as stored on `a2a.work.<role>.<taskId>`. PROTOCOL.md section 6. */
export type Work = {
  v: 1;
  taskId: string;
  contextId: string;
  /** Turn of the task this work belongs to: a worker that finds the task at a later turn, or ended, drops it. */
  turn: number;
  profile: ProfileName;
  /** Set when a supervisor delegates; absent when the task itself was addressed to this role. */
  call?: WorkCall;
  message: Message;
  /** Of the task: a context has its name from a client, and two owners may have chosen the same one. */
  owner?: Owner;
  /** Request-level metadata of the client, without reserved keys. */
  metadata?: Metadata;
};

export type WorkCall = {
  /** Call id: the producer id of what the agent says, and the name that pairs a start with its end. */
  id: string;
  /** How the agent's work shows to clients. */
  presentation: AgentPresentation;
  /** What an interrupted call of an earlier turn left for its adapter. */
  resume?: unknown;
};
