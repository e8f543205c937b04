import type { Message } from '@hopline/a2a';
import type { LaneArtifact, Work } from '@hopline/events';
import type { AgentEntry, InputWriter } from '@hopline/log';
import type { TraceCarrier } from '@hopline/telemetry';
import type { Planner } from './planner.ts';
import type { TurnView } from './turn-view.ts';

/** How a profile conducts a turn: told of every change in the log, it says what is due. Saying a thing twice does no harm: ordinals and the decider drop it. */
export interface TurnRunner {
  /** Called once, when the log has been read up to its newest record, and again after every later record, never twice at a time. */
  advance(): Promise<void>;
}

/** What an agent is asked to do. */
type Delegation = {
  id: string;
  agent: string;
  resume?: unknown;
  answer?: LaneArtifact;
  /** Absent: the client's message. */
  message?: Message;
};

export type TurnContext = {
  work: Work;
  /** Delivery count of the work item: above 1 a supervisor before this one may have said something. */
  attempt: number;
  view: TurnView;
  writer: InputWriter;
  planner: Planner;
  /** The agents that live now; waits for one to appear when there is none. */
  agents: () => Promise<AgentEntry[]>;
  /** What was said in the context before a turn, oldest first: read from the log. */
  history: (beforeTurn: number) => Promise<readonly Message[]>;
  isLive: (agent: string) => boolean;
  /** Queues a call for an agent. The same call is queued once, whoever asks again. */
  delegate: (call: Delegation) => Promise<void>;
  /** Ends the supervision with an error: for work that goes on beside `advance`. */
  fail: (error: unknown) => void;
  /** What the supervisor is called in artifact descriptions. */
  displayName: string;
  trace: () => TraceCarrier;
  signal: AbortSignal;
};
