import { randomUUID } from 'node:crypto';
import { isObject } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import { type CallInput, type Elicitation, questionParts } from './elicitation.ts';
import type { WrittenCall } from './tool-calls.ts';

/**
 * Calls that wait for the user: the first one asked the question, and the others follow it. JSON: the log keeps it as `Turn.resume`, so another
 * process can run them.
 */
export type AskedCalls = { calls: readonly WrittenCall[]; elicitation: Elicitation; input: CallInput };

/** Undefined for state of another adapter, because an operator may change the adapter of an agent while its contexts continue. */
export function askedIn(resume: unknown): AskedCalls | undefined {
  return isObject(resume) && isObject(resume.mcp) ? (resume.mcp as AskedCalls) : undefined;
}

/** Ends the turn with the question. `fault`: why the last answer was refused. */
export function askUser(asked: AskedCalls, fault?: string): AgentEvent {
  const parts = questionParts(asked.elicitation, fault);
  const message = { messageId: randomUUID(), role: 'ROLE_AGENT' as const, parts };
  return { type: 'interrupted', state: 'TASK_STATE_INPUT_REQUIRED', message, resume: { mcp: asked } };
}
