import type { Message, Metadata } from '@hopline/a2a';
import type { AgentRegistration } from '@hopline/log';

/** Chooses the agents that work on a message, without a language model. */
export interface Planner {
  /** Rejects with NoAgentFits when no agent can take the message. */
  plan(request: PlanRequest): Promise<Plan>;
}

export type PlanRequest = {
  message: Message;
  metadata: Metadata;
  /** Earlier messages of the context, oldest first. */
  history: readonly Message[];
  /** Agents that are live or were live a moment ago. A call to one of the latter waits for it. */
  agents: (AgentRegistration & { isLive?: boolean })[];
  signal: AbortSignal;
};

export type Plan = {
  /** The plan in words, as tokens of 1 to 10 characters, without the ⟦ ⟧ markers. */
  text: AsyncIterable<string> | Iterable<string>;
  /** Agents to call, concurrently, in the order of the plan. */
  agents: string[];
};

/** Number of agents that a failure names. Further agents are only counted. */
export const CHOICES_MAX = 32;

/** Why no agent takes the message: a sentence for its sender that lists the agents which can be named instead. */
export class NoAgentFits extends Error {
  override readonly name = 'NoAgentFits';
  readonly choices: readonly string[];
  /** Whether the same message may succeed later. */
  readonly retryable: boolean;

  constructor(
    reason: string,
    { available = [], retryable = false }: { available?: readonly AgentRegistration[]; retryable?: boolean } = {},
  ) {
    const choices = available.slice(0, CHOICES_MAX).map(({ name }) => name);
    const others = available.length - choices.length;
    const list = `; choose one of: ${choices.join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
    super(choices.length === 0 ? reason : reason + list);
    this.choices = choices;
    this.retryable = retryable;
  }
}
