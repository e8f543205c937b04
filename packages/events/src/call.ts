import type { Message, Metadata } from '@hopline/a2a';
import type { AgentPresentation } from './presentation.ts';
import type { TraceCarrier } from './subjects.ts';

/** Content of a call's work item, except the members that come from its task. */
export type CallContent = {
  presentation: AgentPresentation;
  /** The client's message, or the supervisor's own request. */
  message: Message;
  metadata?: Metadata;
  resume?: unknown;
  /** The supervisor's span, which is the parent of the agent's. */
  trace?: TraceCarrier;
};

/** A call, or its fact, with the content that its work item needs. */
export type WorkingCall = { call: string; agent: string } & CallContent;

/** The call with its content; undefined if the supervisor that began the call queues its work itself. */
export function workingCall(call: { call: string; agent: string } & Partial<CallContent>): WorkingCall | undefined {
  return call.presentation === undefined || call.message === undefined ? undefined : (call as WorkingCall);
}
