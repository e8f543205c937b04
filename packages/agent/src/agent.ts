import type { Artifact, Message, Metadata } from '@hopline/a2a';
import type { Owner } from '@hopline/events';

/** An agent: a name, skills, and a turn it can run. It never sees the broker, ids of the log, or coalescing. */
export interface Agent {
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
  /** What was said before in this context, oldest first. */
  history?: readonly Message[];
  /** 1-based; a redelivered job is a new attempt, and its text replaces what the dead attempt had said. */
  attempt: number;
  /** What the interrupted event of the turn before left (`AgentEvent` input-required, auth-required). */
  resume?: unknown;
  /** W3C trace context to hand on to whatever the agent calls. */
  trace: { traceparent?: string; tracestate?: string };
  signal: AbortSignal;
};

/**
 * What an agent says in a turn. Nothing is assumed of an agent that ends without `done`, `failed`, or an interrupted event: running off the end of the iterable is `done`.
 */
export type AgentEvent =
  /** A token of the answer, of any size, byte for byte. `id` is the source's message id, used to drop a repeated delivery, never the text (S0-22). */
  | { type: 'text'; text: string; id?: string }
  /** The whole answer so far: nothing is added if it equals what was said, the rest is added if it goes on from it, else it replaces it. */
  | { type: 'snapshot'; text: string }
  /** A tool call of the agent begins or ends; `callId` pairs them (names cannot: two calls of one tool may run at once). A call left open ends with the turn. */
  | { type: 'tool'; phase: 'start' | 'end'; callId: string; tool: string; failed?: boolean }
  /** A line about progress that is not part of the answer (S4-21). */
  | { type: 'progress'; message: Message }
  /** An artifact of the agent's own, whole or a chunk of it. Its id pairs chunks within the turn and is never shown. */
  | { type: 'artifact'; artifact: Artifact; append: boolean; lastChunk: boolean }
  | { type: 'interrupted'; state: 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_AUTH_REQUIRED'; message: Message; resume?: unknown }
  /** `direct`: the message is the whole answer, and nothing was said before it: the agent made no task of the turn ([A2A 1.0] 3.1.1). */
  | { type: 'done'; message?: Message; direct?: true }
  | {
      type: 'failed';
      reason: string;
      retryable: boolean;
      message?: Message;
      state?: 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_REJECTED';
    };
