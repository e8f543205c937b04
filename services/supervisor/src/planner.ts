import type { Message, Metadata } from '@hopline/a2a';
import type { AgentEntry } from '@hopline/log';

/** Decides which agents work on a message. The deterministic planner needs no language model; one with a model stands behind the same seam. */
export interface Planner {
  /** Rejects with NoAgentFits when no agent can take the message. */
  plan(request: PlanRequest): Promise<Plan>;
}

export type PlanRequest = {
  message: Message;
  metadata: Metadata;
  /** What was said in the context before, oldest first. */
  history: readonly Message[];
  agents: AgentEntry[];
  signal: AbortSignal;
};

export type Plan = {
  /** The plan in words, as tokens of 1 to 10 characters, without the ⟦ ⟧ markers. */
  text: AsyncIterable<string> | Iterable<string>;
  /** Agents to call, all at once, in the order in which the plan names them. */
  agents: string[];
};

export class NoAgentFits extends Error {
  override readonly name = 'NoAgentFits';
}
