import { type ApprovalRequest, isObject, type Message } from '@hopline/a2a';
import type { ChatMessage } from '@hopline/chat-model';
import type { AgentEvent, Approval, Turn } from './agent.ts';
import { answeredApproval, askApproval } from './approval.ts';

/** A conversation that waits for the approval of a call. It is JSON, because the log keeps it until the answer comes. */
export type PausedLoop = {
  /** The messages after the prompt. The last one is the model's message with the calls. */
  messages: readonly ChatMessage[];
  /** The results of these calls; null for a call that waits. The user is asked about the first one that waits. */
  results: readonly (string | null)[];
};

/** A paused conversation and the prompt before it. */
export type PausedModel = PausedLoop & {
  /** Which `model()` of the turn paused, from 1 on. */
  number: number;
  /** The message that the conversation answers. */
  request?: Message;
  /** The prompt that the agent has given itself. */
  prompt?: readonly ChatMessage[];
};

const PAUSED = 'hopline.model';

/** Ends the turn with the question for a call of a model. */
export function pauseModel(request: ApprovalRequest, paused: PausedModel): AgentEvent {
  return askApproval(request, { resume: { [PAUSED]: paused } });
}

/** The conversation that the turn continues, with the decision about the call in question. */
export function pausedModelOf(turn: Pick<Turn, 'resume' | 'message'>): { approval: Approval; paused: PausedModel } | undefined {
  const { approval, resume } = answeredApproval(turn) ?? {};
  if (approval === undefined || !isObject(resume) || !isObject(resume[PAUSED])) return undefined;
  return { approval, paused: resume[PAUSED] as PausedModel };
}

/** The message that a paused conversation answers, and the history before it. Neither includes the question or the decision. */
export function conversationOf(
  { history }: Pick<Turn, 'history'>,
  { request }: PausedModel,
): Pick<Turn, 'history'> & { message?: Message } {
  if (request === undefined) return { history };
  const index = history.findLastIndex(({ messageId }) => messageId === request.messageId);
  return { history: index < 0 ? history : history.slice(0, index), message: request };
}
