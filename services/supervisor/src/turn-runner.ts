import type { Message } from '@hopline/a2a';
import type { Work } from '@hopline/events';
import type { AgentEntry, InputWriter } from '@hopline/log';
import type { Planner } from './planner.ts';
import type { TurnView } from './turn-view.ts';

/** How a profile conducts a turn: told of every change in the log, it says what is due. Saying a thing twice does no harm: ordinals and the decider drop it. */
export interface TurnRunner {
  /** Called once, when the log has been read up to its newest record, and again after every later record, never twice at a time. */
  advance(): Promise<void>;
}

export type TurnContext = {
  work: Work;
  view: TurnView;
  writer: InputWriter;
  planner: Planner;
  agents: () => Promise<AgentEntry[]>;
  /** What was said in the context before this turn, oldest first: read from the log. */
  history: () => Promise<readonly Message[]>;
  /** Queues a call for an agent. The same call is queued once, whoever asks again. */
  delegate: (call: {
    id: string;
    agent: string;
    resume?: unknown;
    answer?: { name: string; description: string; metadata: Record<string, unknown> };
  }) => Promise<void>;
  /** What the supervisor is called in artifact descriptions. */
  displayName: string;
  signal: AbortSignal;
};
