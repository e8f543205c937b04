import type { AgentSkill, ApprovalDecision, ApprovalRequest, Artifact, CardReport, Message, Metadata } from '@hopline/a2a';
import type { EndedRequest } from '@hopline/chat-model';
import type { InputSource, Owner, StepOutcome, TokenUsage } from '@hopline/events';
import type { WorkGate } from '@hopline/log';
import type { TurnLog } from './turn-log.ts';

/** An agent: a name, skills, and turns that it can run. It has no access to the broker, to ids of the log, or to coalescing. */
export interface Agent {
  /** The agent's own name; a name in the agents file takes precedence. */
  readonly name?: string;
  readonly description: string;
  /** The card of the agent's own server. Absent: it has no server, or has not answered yet. */
  readonly card?: CardReport | undefined;
  /**
   * The agent reports when it begins to work (`working`), like a server that queues tasks. Any other agent works from the beginning of its
   * turn.
   */
  readonly reportsWork?: true;
  /**
   * The agent may send one text several times, as remote servers do: as tokens, whole in an artifact, and in its last message. A
   * supervisor's answer then contains the text once (S2-2). The text of any other agent is shown as it arrives.
   */
  readonly repeatsText?: true;
  /** Closed while the agent temporarily cannot run turns: its worker then takes no further work. Absent: it always can. */
  readonly gate?: WorkGate;
  /** Called every 30 s, because an adapter may get its skills from a server. Rejects if they are not available now. */
  skills(): Promise<AgentSkill[]>;
  /**
   * Runs one turn. Returns when the turn is over; an error is a failed turn. Must stop soon after `turn.signal` aborts: after STOP_MS_MAX the
   * turn is abandoned.
   */
  run(turn: Turn): AsyncIterable<AgentEvent>;
  /**
   * Variant of `run` for adapters of streams: it yields events that arrived together as one array. Used instead of `run` if present,
   * because a step of an iterator costs more than a token.
   */
  runBatches?(turn: Turn): AsyncIterable<readonly AgentEvent[]>;
  /**
   * Cancels a run on a server that a turn, perhaps in another process, has reported with `Turn.remoteRunBegan`. Resolves when the server
   * has answered or refused; at once if it already has. Rejects if it does neither within CANCEL_MS_MAX.
   */
  cancelRemoteRun?(run: unknown, trace: Turn['trace']): Promise<void>;
  /**
   * Whether a turn with this `resume` continues the run. If so, the run is not canceled when an attempt of the previous turn ends. Absent:
   * no turn does.
   */
  continuesRun?(run: unknown, resume: unknown): boolean;
  /** Releases connections and child processes. Called once, after the last turn. */
  close(): Promise<void>;
}

/** `run` of an adapter that has `runBatches`. */
export async function* eventsOf(batches: AsyncIterable<readonly AgentEvent[]>): AsyncGenerator<AgentEvent> {
  for await (const events of batches) yield* events;
}

/**
 * A call that a person has decided about: the tool and the arguments that the question showed, and the decision. `reason`: why the call was
 * refused, in that person's words.
 * @public
 */
export type Approval = ApprovalRequest & ApprovalDecision;

/** One message of a client for the agent, with its context. */
export type Turn = {
  taskId: string;
  contextId: string;
  /** Owner of the context: two owners may have chosen the same context id. */
  owner?: Owner;
  message: Message;
  metadata: Metadata;
  /**
   * Earlier messages of the context, oldest first: those of the same owner's earlier tasks, and those of this task's earlier turns. Bounded
   * (CONTEXT_HISTORY_LIMITS): the oldest are left out.
   */
  history: readonly Message[];
  /** 1-based. A redelivered job is a new attempt, and its text replaces that of the earlier one. */
  attempt: number;
  /**
   * The agent's `resume` value: that of the question which this turn answers, otherwise that of its newest `done` in the context. It is
   * JSON in the log, so it outlives the process.
   */
  resume?: unknown;
  /**
   * Text of the answer that earlier attempts have shown. Clients keep showing it until this attempt has content. Absent for the first
   * attempt.
   */
  shownText?: string;
  /**
   * Runs that earlier attempts of this turn have reported, oldest first. They may still be running: the agent continues or cancels each of
   * them before it begins another.
   */
  remoteRuns?: readonly unknown[];
  /**
   * Call it when the agent has begun a run on a server, before yielding events of that run. `run` is what `cancelRemoteRun` needs: JSON, at
   * most REMOTE_RUN_UNITS_MAX of packages/task.
   */
  remoteRunBegan?: (run: unknown) => void;
  /** W3C trace context for the agent's own requests. */
  trace: { traceparent?: string; tracestate?: string };
  /** W3C trace context for the request of a tool call. Read it after yielding the `tool` event that begins the call. */
  toolTrace?: (callId: string) => { traceparent?: string; tracestate?: string };
  signal: AbortSignal;
  /** The stored steps of this turn. Absent if nothing can store them. */
  steps?: TurnSteps;
  /** The call that the message approves or refuses. Set by `defineAgent`. */
  approval?: Approval;
  /** The text of the answer that this attempt has yielded outside of streams. Set by `defineAgent`. */
  textSoFar?: () => string;
  /** Sends the requests of `model` in tests. Absent: the process's `fetch`. */
  modelFetch?: typeof fetch;
  /** Counts a completed request of `model`. Absent: the metrics of this process count it. */
  modelRequestEnded?: (request: EndedRequest) => void;
  log?: TurnLog;
  /**
   * Shows the error behind a `failed` event to the agent's author. The error may hold content, so it does not go to a log, span or client.
   */
  showError?: (error: unknown) => void;
};

/** Stores the steps of a turn, one after the other. Its promises reject when the turn is over for this attempt. */
export interface TurnSteps {
  /**
   * The turn has reached a step. `outcome` is what an earlier attempt has stored for it; if there is none, the caller runs the step and
   * then calls `end`. `key` is the same for this step in every attempt, and differs from that of every other step. Rejects with AgentMisuse
   * if an earlier attempt has stored another step in this place.
   */
  begin(step: string): Promise<BegunStep>;
  /** Stores the outcome of the step that has begun. Resolves when no later attempt can miss it. */
  end(outcome: StepOutcome): Promise<void>;
}

/** A step that the turn has reached: its idempotency key and, if an earlier attempt has ended it, its outcome. */
export type BegunStep = { key: string; outcome?: StepOutcome };

/** The reason of `Turn.signal` when the task is over. Only then does an agent that waits for credentials abandon its own task. */
export const TASK_ENDED = 'ended';

/** Events of a turn. An iterable that ends without `done`, `failed` or an interrupting event counts as `done`. */
export type AgentEvent =
  /**
   * A token of the answer, of any size, byte for byte. `id`: the source's message id, by which a repeated delivery is recognized, never by
   * its text (S0-22). `stream`: which of several concurrent texts it belongs to, e.g. one for each call of a model; streams are never mixed
   * (S1-25).
   */
  | { type: 'text'; text: string; id?: string; stream?: string; source?: InputSource }
  /** The stream has ended. A later token of the same name begins a new text. */
  | { type: 'text-end'; stream: string }
  /** The agent now works on the message. Every other event implies it, except `auth-required` and the events that end the turn. */
  | { type: 'working' }
  /** The current step of the agent's own plan, e.g. a node of a graph: shown in the span of the turn, not to clients (S1-31). */
  | { type: 'step'; step: string }
  /**
   * The whole answer so far. An equal text changes nothing, a longer text with the same beginning adds its rest, and any other text
   * replaces the answer.
   */
  | { type: 'snapshot'; text: string }
  /**
   * Start or end of a tool call; `callId` pairs them, because two calls of one tool may run concurrently. A call that is still open ends
   * with the turn. `waiting`: a server below made the call, which now waits for the client. `arguments` with the start and `result` with
   * the end are JSON values that clients see, cut above a bound (tool-values.ts); the result of a failed call is its error.
   */
  | {
      type: 'tool';
      phase: 'start' | 'end';
      callId: string;
      tool: string;
      failed?: boolean;
      waiting?: boolean;
      arguments?: unknown;
      result?: unknown;
    }
  /** Tokens that the turn has used since the last such event. Their sum is `metadata.usage` of the status that ends the turn. */
  | { type: 'usage'; usage: TokenUsage }
  /** A line about progress that is not part of the answer (S4-21). */
  | { type: 'progress'; message: Message; source?: InputSource }
  /**
   * An artifact of the agent, whole or as a chunk. Its id pairs chunks within the turn; clients see another id. `apart`: the artifact is
   * separate from the answer even if its parts are text. Without `apart`, a supervisor with one answer adds the text to it, because that is
   * what remote agents intend.
   */
  | { type: 'artifact'; artifact: Artifact; append: boolean; lastChunk: boolean; apart?: true; source?: InputSource }
  /**
   * The agent needs credentials that may arrive out of band. The turn does not end: it continues with the agent's next event. If the client
   * answers with a message instead, this turn is over, and the next one gets `resume`.
   */
  | { type: 'auth-required'; message: Message; resume?: unknown }
  | { type: 'interrupted'; state: 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_AUTH_REQUIRED'; message: Message; resume?: unknown }
  /**
   * `direct`: the message is the whole answer, without text before it, because the agent made no task ([A2A 1.0] 3.1.1). `standing`: how
   * the message relates to the text before it, if the agent knows that: the message `repeats` one of the streams, or `replaces` all of
   * them. `history` is added to the task's history, each message once by its id; `metadata` is merged into the task's (S1-16, S1-17).
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
      /** A word of a closed list for the span of the turn, such as `http_500`; never content. */
      cause?: string;
      retryable: boolean;
      message?: Message;
      state?: 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_REJECTED';
    };

/** An event that ends the turn. */
export type EndEvent = Extract<AgentEvent, { type: 'done' | 'failed' | 'interrupted' }>;
