import type { InterruptedState, Message, Metadata, TerminalState } from '@hopline/a2a';
import type { EndEvent } from './agent.ts';
import type { MessageRelation } from './agent-text.ts';
import { AgentMisuse } from './misuse.ts';
import type { Over } from './task-watch.ts';

/** How a turn ended. */
export type TurnEnd = {
  state: TerminalState | InterruptedState;
  message?: Message;
  /** The message is the whole answer. */
  direct?: true;
  standing?: MessageRelation;
  history?: Message[];
  metadata?: Metadata;
  reason?: string;
  /** The cause of a failure as a word of a closed list, for spans. */
  cause?: string;
  retryable?: boolean;
  resume?: unknown;
};

/** A turn that the task no longer needed. Its end was not written. */
export type UnneededTurn = { unneeded: Exclude<Over, 'superseded'> } & { [K in keyof TurnEnd | 'lastN']?: undefined };

/** `lastN`: ordinal of the turn's last input. */
export type TurnOutcome = (TurnEnd & { lastN: number; unneeded?: undefined }) | UnneededTurn;

export const COMPLETED: TurnEnd = { state: 'TASK_STATE_COMPLETED' };

export const failedEnd = (reason: string, retryable: boolean, cause?: string): TurnEnd => ({
  state: 'TASK_STATE_FAILED',
  reason,
  retryable,
  ...(cause !== undefined && { cause }),
});

export function endOf(event: EndEvent): TurnEnd {
  const message = event.message && { message: event.message };
  if (event.type === 'done') {
    const { type: _type, message: _message, ...more } = event;
    return { ...COMPLETED, ...message, ...more };
  }
  if (event.type === 'interrupted') {
    return { state: event.state, ...message, ...(event.resume !== undefined && { resume: event.resume }) };
  }
  const { state = 'TASK_STATE_FAILED', reason, retryable, cause } = event;
  return { state, reason, retryable, ...(cause !== undefined && { cause }), ...message };
}

/** The end of a turn whose agent threw. The error may hold content, so only the kit's own messages become a reason. */
export function failureOf(error: unknown): TurnEnd {
  return failedEnd(error instanceof AgentMisuse ? error.message : 'the agent failed', false);
}

/** The file name and line at which the error was thrown, for the agent's author. Does not contain the message. */
export function placeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { stack = '', message } = error;
  // The lines before the frames repeat the message.
  const frames = stack.slice(stack.indexOf(message) + message.length);
  return /(?<![\w.-])([\w.-]+\.[cm]?[jt]sx?:\d+):\d+\)?$/m.exec(frames)?.[1];
}
