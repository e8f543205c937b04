import type { AgentEvent } from './agent.ts';
import { AgentMisuse } from './misuse.ts';
import type { TurnEnd } from './turn-inputs.ts';

/** How what an agent says or throws ends its turn. */

export const DONE: TurnEnd = { state: 'TASK_STATE_COMPLETED' };

export const failed = (reason: string, retryable: boolean): TurnEnd => ({ state: 'TASK_STATE_FAILED', reason, retryable });

export type EndEvent = Extract<AgentEvent, { type: 'done' | 'failed' | 'interrupted' }>;

export function isEnd(event: AgentEvent): event is EndEvent {
  return event.type === 'done' || event.type === 'failed' || event.type === 'interrupted';
}

export function endOf(event: EndEvent): TurnEnd {
  const said = event.message && { message: event.message };
  if (event.type === 'done') {
    const { type: _type, message: _message, ...more } = event;
    return { ...DONE, ...said, ...more };
  }
  if (event.type === 'interrupted') {
    return { state: event.state, ...said, ...(event.resume !== undefined && { resume: event.resume }) };
  }
  return { state: event.state ?? 'TASK_STATE_FAILED', reason: event.reason, retryable: event.retryable, ...said };
}

/** What an agent throws may hold content: only our own words about it become a reason. */
export function thrownBy(error: unknown): TurnEnd {
  return failed(error instanceof AgentMisuse ? error.message : 'the agent failed', false);
}

/** Where in a source file it was thrown, for the agent's author: file name and line, without the words of the error. */
export function placeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { stack = '', message } = error;
  // The frames only: the lines before them repeat the message.
  const frames = stack.slice(stack.indexOf(message) + message.length);
  return /([\w.-]+\.[cm]?[jt]sx?:\d+):\d+\)?$/m.exec(frames)?.[1];
}
