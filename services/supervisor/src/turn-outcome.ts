import { isObject, type Message, type Metadata } from '@hopline/a2a';
import { pieceEnd } from '@hopline/coalesce';
import {
  type ArtifactInput,
  addTokens,
  type CallEnded,
  type LaneArtifact,
  type StatusInput,
  type TokenUsage,
} from '@hopline/events';
import type { NoAgentFits } from './planner.ts';
import type { TurnContext } from './turn-runner.ts';

/**
 * Largest text of one event of the final result, in UTF-8 bytes. A longer result is sent in several chunks of one artifact. JSON takes at
 * most six bytes for each of them, so such an event fits into a record of 1 MiB together with the task's aggregate.
 */
export const RESULT_BYTES_MAX = 128 * 1024;

/**
 * Appends the whole answer in one artifact, before the final state (S0-20), unless an earlier supervisor has appended all of it. Waits for
 * the log, because the answers of all agents together may be larger than the writer's buffer. Rejects if the writer has failed.
 */
export async function addResult(
  { view, writer }: Pick<TurnContext, 'view' | 'writer'>,
  lane: string,
  artifact: LaneArtifact,
  text: string,
): Promise<void> {
  if (view.isShown(lane) && !view.isOpen(lane)) return;
  // The first chunk replaces the text that the earlier supervisor appended before it died.
  if (view.isShown(lane)) writer.add({ kind: 'open', lane, artifact });
  for (const chunk of resultChunks(lane, artifact, text)) {
    writer.add(chunk);
    await writer.ready();
  }
}

function* resultChunks(lane: string, artifact: LaneArtifact, text: string): Generator<ArtifactInput> {
  for (let from = 0; from < text.length; ) {
    const to = pieceEnd(text, from, RESULT_BYTES_MAX);
    const parts = [{ text: text.slice(from, to) }];
    yield { kind: 'artifact', lane, artifact, parts, append: from > 0, last: to === text.length };
    from = to;
  }
}

/**
 * The end of a task: completed, with a message that names the failed agents, or failed if all agents failed. `messageId`: id of the message
 * with the reason.
 */
export function outcomeOf(ends: readonly CallEnded[], messageId: string): StatusInput {
  const failed = ends.filter(({ state }) => state !== 'TASK_STATE_COMPLETED');
  const [first] = failed;
  if (first === undefined) return { kind: 'status', state: 'TASK_STATE_COMPLETED' };
  if (failed.length < ends.length) return completedWithout(failed);
  const reason = `${first.agent}: ${first.reason ?? 'the agent ended without a result'}`;
  const state = first.state === 'TASK_STATE_REJECTED' ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED';
  return failure(messageId, reason, { retryable: first.retryable === true, message: first.message, state });
}

/** The status with the tokens of these calls and of the supervisor's own model as `metadata.usage`. */
export function withUsage(
  status: StatusInput,
  ends: readonly CallEnded[],
  own: readonly (TokenUsage | undefined)[] = [],
): StatusInput {
  const reported = [...own, ...ends.map(({ metadata }) => metadata?.usage)];
  const sum = reported.filter(isObject).reduce<TokenUsage>(addTokens, {});
  return Object.keys(sum).length === 0 ? status : { ...status, metadata: { usage: sum, ...status.metadata } };
}

/** The task is completed although these calls failed. */
export function completedWithout(failed: readonly CallEnded[]): StatusInput {
  const failedAgents = failed.map(({ agent, reason }) => ({ agent, reason }));
  return { kind: 'status', state: 'TASK_STATE_COMPLETED', ...(failed.length > 0 && { metadata: { failedAgents } }) };
}

type FailureDetails = {
  retryable?: boolean;
  message?: Message | undefined;
  state?: 'TASK_STATE_FAILED' | 'TASK_STATE_REJECTED';
  metadata?: Metadata;
};

export function failure(messageId: string, reason: string, details: FailureDetails = {}): StatusInput {
  const { retryable = false, state = 'TASK_STATE_FAILED', metadata } = details;
  const message = details.message ?? { messageId, role: 'ROLE_AGENT', parts: [{ text: reason }] };
  return { kind: 'status', state, message, metadata: { reason, retryable, ...metadata } };
}

/** The agents that a client can choose from, as data for a program; the reason has them as a sentence for the user. */
export function choiceOf({ choices }: NoAgentFits): Metadata {
  if (choices.length === 0) return {};
  return { choose: { agents: [...choices], option: '--agent NAME', member: 'metadata.agent' } };
}
