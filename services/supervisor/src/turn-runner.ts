import type { Message } from '@hopline/a2a';
import type { Work, WorkingCall } from '@hopline/events';
import type { InputWriter } from '@hopline/log';
import type { ConductingProfile, Profile } from '@hopline/profiles';
import type { TraceCarrier } from '@hopline/telemetry';
import type { Planner, PlanRequest } from './planner.ts';
import type { TurnView } from './turn-view.ts';

/**
 * Runs the turns of a profile: after every change in the log it appends what is due. Appending an input twice does no harm, because
 * ordinals and the decider reject the second one.
 */
export interface TurnRunner {
  /**
   * Called once when the log has been read up to its newest record, and then after every later record that contains more than artifacts of
   * agents. Calls never overlap.
   */
  advance(): Promise<void>;
}

/** A call to an agent. `message` is absent for the client's message. */
type Delegation = Pick<WorkingCall, 'call' | 'agent' | 'presentation' | 'resume'> & { message?: Message };

export type TurnContext = {
  work: Work;
  /** How clients see the task. */
  profile: Profile;
  /** Delivery count of the work item. If it is above 1, an earlier supervisor may have written inputs. */
  attempt: number;
  view: TurnView;
  writer: InputWriter;
  planner: Planner;
  /** Agents that are live or were live a moment ago. If there is none, waits for one to appear. */
  agents: () => Promise<PlanRequest['agents']>;
  /** Messages of the context before a turn, oldest first, read from the log. */
  history: (beforeTurn: number) => Promise<readonly Message[]>;
  isLive: (agent: string) => boolean;
  /** Stores a call, whose agent then gets its work. Does nothing if an earlier supervisor has stored it. */
  delegate: (call: Delegation) => void;
  /** Ends the supervision with an error, for work that runs concurrently with `advance`. */
  fail: (error: unknown) => void;
  /** The supervisor's name in artifact descriptions. */
  displayName: string;
  trace: () => TraceCarrier;
  signal: AbortSignal;
};

/** The context of a turn in which the supervisor plans and answers. */
export type ConductingContext = TurnContext & { profile: ConductingProfile };
