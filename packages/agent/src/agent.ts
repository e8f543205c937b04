import type { Artifact, Message, Metadata } from '@hopline/a2a';
import type { InputSource, Owner } from '@hopline/events';
import type { TurnLog } from './turn-log.ts';

/** An agent: a name, skills, and a turn it can run. It never sees the broker, ids of the log, or coalescing. */
export interface Agent {
  /** What it calls itself; the name in the agents file counts more. */
  readonly name?: string;
  readonly description: string;
  /** Asked again every 30 s: an adapter may learn its skills from what it stands for. Rejects when they cannot be told now. */
  skills(): Promise<AgentSkill[]>;
  /** Runs one turn. Returns when the turn is over; throwing is a failed turn. Must stop soon after `turn.signal` aborts; after STOP_MS_MAX it is left alone. */
  run(turn: Turn): AsyncIterable<AgentEvent>;
  close(): Promise<void>;
}

export type AgentSkill = { id: string; name: string; description: string; tags: string[]; examples?: string[] };

export type Turn = {
  taskId: string;
  contextId: string;
  /** Whose conversation the context is: two owners may have chosen the same name for theirs. */
  owner?: Owner;
  message: Message;
  metadata: Metadata;
  /** What was said in the context before, oldest first: of the same owner's earlier tasks and of this task's earlier turns. Bounded (`CONVERSATION_LIMITS`); the newest are there. */
  history: readonly Message[];
  /** 1-based; a redelivered job is a new attempt, and its text replaces what the dead attempt had said. */
  attempt: number;
  /**
   * What this agent left: with the interrupted event that this turn answers; else with its newest `done` in the conversation. JSON that went through the log, so it outlives
   * every process.
   */
  resume?: unknown;
  /** W3C trace context to hand on to whatever the agent calls. */
  trace: { traceparent?: string; tracestate?: string };
  signal: AbortSignal;
  log?: TurnLog;
};

/** The reason of `Turn.signal` when the task is over: an agent that waits for credentials gives its own task up only then. */
export const TASK_ENDED = 'ended';

/**
 * What an agent says in a turn. Nothing is assumed of an agent that ends without `done`, `failed`, or an interrupted event: running off the end of the iterable is `done`.
 */
export type AgentEvent =
  /**
   * A token of the answer, of any size, byte for byte. `id` is the source's message id, used to drop a repeated delivery, never the text (S0-22). `stream`: which of several texts it belongs to, where
   * an agent says more than one, perhaps at once (one for each invocation of a model); texts of two streams are never mixed (S1-25).
   */
  | { type: 'text'; text: string; id?: string; stream?: string; source?: InputSource }
  /** The stream says no more. One that does speak again later is a new text. */
  | { type: 'text-end'; stream: string }
  /** The step of its own plan the agent is in, e.g. a node of a graph: a name of its source, for the span of the turn, shown to nobody (S1-31). */
  | { type: 'step'; step: string }
  /** The whole answer so far: nothing is added if it equals what was said, the rest is added if it goes on from it, else it replaces it. */
  | { type: 'snapshot'; text: string }
  /** A tool call of the agent begins or ends; `callId` pairs them (names cannot: two calls of one tool may run at once). A call left open ends with the turn. */
  | { type: 'tool'; phase: 'start' | 'end'; callId: string; tool: string; failed?: boolean }
  /** A line about progress that is not part of the answer (S4-21). */
  | { type: 'progress'; message: Message; source?: InputSource }
  /**
   * An artifact of the agent's own, whole or a chunk of it. Its id pairs chunks within the turn and is never shown. `apart`: it stands beside the answer also where its parts are text; without it a
   * supervisor with one answer takes that text for the answer, as foreign agents mean it.
   */
  | { type: 'artifact'; artifact: Artifact; append: boolean; lastChunk: boolean; apart?: true; source?: InputSource }
  /**
   * The agent needs credentials that may reach it another way than by a message. Not an end: the turn waits, and goes on with whatever the agent says next. Should the client answer
   * with a message instead, this turn is over, and the next one gets `resume`.
   */
  | { type: 'auth-required'; message: Message; resume?: unknown }
  | { type: 'interrupted'; state: 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_AUTH_REQUIRED'; message: Message; resume?: unknown }
  /**
   * `direct`: the message is the whole answer, and nothing was said before it: the agent made no task of the turn ([A2A 1.0] 3.1.1). `standing`: how the message stands to the text said before it, where
   * the agent knows: it `repeats` one of its streams, or it is the answer and what was said `replaces`. `history` joins the task's history, each message once by its id; `metadata` the task's (S1-16, S1-17).
   */
  | {
      type: 'done';
      message?: Message;
      direct?: true;
      standing?: 'repeats' | 'replaces';
      history?: Message[];
      metadata?: Metadata;
      resume?: unknown;
    }
  | {
      type: 'failed';
      reason: string;
      retryable: boolean;
      message?: Message;
      state?: 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_REJECTED';
    };
