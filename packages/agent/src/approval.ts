import { randomUUID } from 'node:crypto';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  approvalRequestOf,
  approvalRequestParts,
  isObject,
  readApprovalResponse,
} from '@hopline/a2a';
import type { AgentEvent, Approval, Turn } from './agent.ts';

/** Member of `Turn.resume` that contains the request which a turn answers, next to the agent's own `resume`. */
const REQUEST = 'hopline.approval';

/**
 * Ends the turn with the question. The log keeps the request as `Turn.resume`. So the call runs with the arguments that were shown, and no
 * answer can change them.
 */
export function askApproval(
  request: ApprovalRequest,
  { question, resume }: { question?: string | undefined; resume?: unknown } = {},
): AgentEvent {
  const message = { messageId: randomUUID(), role: 'ROLE_AGENT' as const, parts: approvalRequestParts(request, question) };
  const kept = { [REQUEST]: request, ...(resume !== undefined && { resume }) };
  return { type: 'interrupted', state: 'TASK_STATE_INPUT_REQUIRED', message, resume: kept };
}

/**
 * The decision in the message that began the turn, and the `resume` that was given with the question. Undefined if the turn does not answer
 * such a question.
 */
export function answeredApproval({
  resume,
  message,
}: Pick<Turn, 'resume' | 'message'>): { approval: Approval; resume: unknown } | undefined {
  if (!isObject(resume)) return undefined;
  const request = approvalRequestOf({ parts: [{ data: { approvalRequest: resume[REQUEST] } }] });
  return request && { approval: { ...request, ...readApprovalResponse(message.parts, request) }, resume: resume.resume };
}

/** The result of a call that was not approved, for the model and for clients. */
export function refusalText({ reason }: ApprovalDecision): string {
  return reason === undefined ? 'The call was not approved.' : `The call was not approved: ${reason}`;
}
