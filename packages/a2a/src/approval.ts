import { isObject, type JsonObject, text } from './json-value.ts';
import type { Message, Part } from './types.ts';

/** A call that an agent asks a person to approve. It travels as a data part in the message of an `input-required` status. */
export type ApprovalRequest = { callId: string; tool: string; arguments: JsonObject };

/** Whether the call runs. `reason`: why not, in that person's words, or why the answer does not count as an approval. */
export type ApprovalDecision = { approved: boolean; reason?: string };

/**
 * A decision as clients send it, with the call to which it applies. It has no arguments, because the call runs with those of the request.
 */
export type ApprovalResponse = ApprovalDecision & { callId: string };

/** Plain-text answers that approve, compared without case and without points or exclamation marks at the end. */
const APPROVING_TEXTS = ['yes', 'y', 'ok', 'approve', 'approved'];

/**
 * The question for people and for clients that know nothing of approvals. It shows every argument, because the arguments are what they
 * approve.
 */
export function approvalQuestion({ tool, arguments: values }: ApprovalRequest): string {
  return `Run ${tool} with ${JSON.stringify(values)}?`;
}

/** The parts of the message that asks: first the question in text, then the request. */
export function approvalRequestParts(request: ApprovalRequest, question: string = approvalQuestion(request)): Part[] {
  const { callId, tool, arguments: values } = request;
  return [{ text: question }, { data: { approvalRequest: { callId, tool, arguments: values } } }];
}

/** The call that the message of an `input-required` status asks to approve; undefined for any other question. */
export function approvalRequestOf(message: Pick<Message, 'parts'> | undefined): ApprovalRequest | undefined {
  for (const { data } of message?.parts ?? []) {
    if (!isObject(data) || !isObject(data.approvalRequest)) continue;
    const { callId, tool, arguments: values } = data.approvalRequest;
    const [id, name] = [text(callId), text(tool)];
    if (id !== undefined && name !== undefined && isObject(values)) return { callId: id, tool: name, arguments: values };
  }
  return undefined;
}

export function approvalResponsePart({ callId, approved, reason }: ApprovalResponse): Part {
  return { data: { approvalResponse: { callId, ...decision(approved, reason) } } };
}

/** The first response in the parts of a message of a client; undefined for any other message, and for a response without all members. */
export function approvalResponseOf(message: Pick<Message, 'parts'>): ApprovalResponse | undefined {
  for (const { data } of message.parts) {
    if (!isObject(data) || !isObject(data.approvalResponse)) continue;
    const { callId, approved, reason } = data.approvalResponse;
    const id = text(callId);
    if (id !== undefined && typeof approved === 'boolean') return { callId: id, ...decision(approved, text(reason)) };
  }
  return undefined;
}

/**
 * Whether the id under which clients see a call belongs to `callId`. Each supervisor above the agent adds the id of its own call as a
 * prefix.
 */
export function isShownCall(shownId: string, callId: string): boolean {
  return shownId === callId || shownId.endsWith(`/${callId}`);
}

/**
 * The decision in the parts of the message that answers `request`: its response or, without one, its text.
 * Only a response with `approved: true` for this call or an approving text approves. Everything else refuses.
 */
export function readApprovalResponse(parts: readonly Part[], request: Pick<ApprovalRequest, 'callId'>): ApprovalDecision {
  const responses = parts.flatMap(({ data }) => (isObject(data) && 'approvalResponse' in data ? [data.approvalResponse] : []));
  if (responses.length === 0) return decisionInText(parts);
  const matching = responses.filter(isObject).filter(({ callId }) => callId === request.callId);
  if (matching.length === 0) return refused(`The response names a different call; ${request.callId} is waiting.`);
  if (matching.every(({ approved }) => approved === true)) return decision(true, text(matching[0]!.reason));
  const refusal = matching.find(({ approved }) => approved === false);
  if (refusal === undefined) return refused('The response has no boolean `approved`.');
  return decision(false, text(refusal.reason));
}

function decisionInText(parts: readonly Part[]): ApprovalDecision {
  const words = parts
    .map(part => part.text ?? '')
    .join('')
    .trim();
  if (APPROVING_TEXTS.includes(words.toLowerCase().replace(/[.!]+$/, ''))) return { approved: true };
  return decision(false, text(words));
}

function refused(reason: string): ApprovalDecision {
  return { approved: false, reason };
}

function decision(approved: boolean, reason: string | undefined): ApprovalDecision {
  return { approved, ...(reason === undefined ? {} : { reason }) };
}
