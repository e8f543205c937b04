import type { InterruptedState, Message, Metadata, TerminalState } from '@hopline/a2a';
import type { AgentPresentation } from './presentation.ts';
import type { TraceCarrier } from './subjects.ts';

/** Content of a call's work item, except for the members that come from its task. */
export type CallContent = {
  presentation: AgentPresentation;
  /** The client's message, or the supervisor's own request. */
  message: Message;
  metadata?: Metadata;
  resume?: unknown;
  /** The supervisor's span, which is the parent of the agent's. */
  trace?: TraceCarrier;
};

/** How a call ended, or for what it waits. */
export type CallEnd = {
  state: TerminalState | InterruptedState;
  message?: Message;
  /** Same as `StatusInput.direct`. */
  direct?: true;
  /** Same as `StatusInput.metadata`. */
  metadata?: Metadata;
  /** Same as `StatusInput.history`. */
  history?: Message[];
  /** The agent's text that policy withholds from the client; only the supervisor reads it. */
  withheldText?: string;
  /** Why the call failed, for people. Never contains message content. */
  reason?: string;
  retryable?: boolean;
  /**
   * State that the adapter needs in its next turn (ids of the remote task or context). It is opaque to all other readers and never shown to
   * clients.
   */
  resume?: unknown;
};

/** A call, or its fact, with the content that its work item needs. */
export type WorkingCall = { call: string; agent: string } & CallContent;

/** The call with its content; undefined if the supervisor that began the call queues the work itself. */
export function workingCall(call: { call: string; agent: string } & Partial<CallContent>): WorkingCall | undefined {
  return call.presentation === undefined || call.message === undefined ? undefined : (call as WorkingCall);
}
