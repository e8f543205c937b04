import { type ApprovalRequest, approvalResponsePart, type Part } from '@hopline/a2a/client';

/**
 * The parts of a message that approves or refuses the call of a question: `question.approval` of a view. The text has the same meaning, for people,
 * and for agents that read no data.
 */
export function approvalResponse({ callId }: Pick<ApprovalRequest, 'callId'>, approved: boolean, reason?: string): Part[] {
  const given = reason?.trim() ? { reason: reason.trim() } : {};
  const text = approved ? 'Approved' : (given.reason ?? 'Refused');
  return [{ text }, approvalResponsePart({ callId, approved, ...given })];
}
