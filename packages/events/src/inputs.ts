import type { InterruptedState, Message, Metadata, Part, TaskState, TerminalState } from '@hopline/a2a';
import type { Owner } from './owner.ts';
import type { Role } from './subjects.ts';

/**
 * Inputs: what clients ask and what agents say, as stored on `a2a.raw.<shard>.<taskId>`.
 * They are never the order of truth for clients; the relay folds them into facts. PROTOCOL.md section 3.
 */

/** Name of a profile (packages/profiles): 1 to 32 of a-z, 0-9 and -. Only the supervisor looks its value up; records keep what follows from it. */
export type ProfileName = string;

/** A client sends a message: the first one creates the task, a later one continues it. */
export type MessageInput = {
  kind: 'message';
  message: Message;
  contextId: string;
  /** Who works on the task; only read when the task is created. */
  role: Role;
  /** Only read when the task is created. */
  profile: ProfileName;
  /** Request-level metadata, kept as it came (S1-8), without the reserved keys. */
  metadata?: Metadata;
  /** Only read when the task is created. Absent: nobody is asked at that door. */
  owner?: Owner;
  /** Tasks that the same owner began in this context before, oldest first. Only read when the task is created. */
  earlierTasks?: string[];
};

export type CancelInput = { kind: 'cancel'; metadata?: Metadata };

export type ClientInput = MessageInput | CancelInput;

/**
 * A question of the task (`timeout`), or its need of credentials (`auth-timeout`), has waited too long. Only the relay says it, and only to the inputs: their order decides, so an answer that was stored before it wins, also where
 * nobody has folded the answer yet.
 */
export type TimeoutInput = {
  kind: 'timeout' | 'auth-timeout';
  /** Which of its kind, `Question.n`. */
  request: number;
};

/**
 * The beginning of an open task comes near the end of its retention: its facts are to be stored again. Only the relay says it. `since` names the beginning that is meant
 * (`FactRecord.since`): once it was carried forward there is nothing to do.
 */
export type CopyForwardInput = { kind: 'copy-forward'; startStoredAt: number };

/** What relays say to themselves, through the inputs so that it has its place in their order. */
export type RelayInput = TimeoutInput | CopyForwardInput;

/** What the client sees of a lane: repeated on every chunk (S0-8). */
export type LaneArtifact = {
  /** Id of the artifact where a profile fixes it; else it is made of the lane. Never an agent's. */
  id?: string;
  /** Leaves the task when the task has ended: for those who follow the stream, not for those who read the task later (S1-28, C-19). */
  transitory?: true;
  /**
   * The first chunk never closes the artifact: clients know a stream by a first chunk that is not its last (S0-17). An answer of one chunk is
   * closed by an empty one (C-2).
   */
  separateClose?: true;
  name?: string;
  description?: string;
  metadata?: Metadata;
  extensions?: string[];
};

/** Where in the agent an input comes from: for the log, never shown to clients (S1-21, S1-31). */
export type InputSource = {
  /** The agent's own name of the stream, e.g. `messages` or `custom` of a LangGraph graph. */
  mode: string;
  /** The step of its own plan, e.g. a node of a graph. */
  node?: string;
};

/**
 * Opens a lane: a run of text that becomes one artifact. Lane names are unique in a task; only the producer that opened a lane writes to it.
 * Opening it again (a new attempt, or a snapshot that replaces) makes the next chunk replace what was streamed (`append:false`, C-5).
 */
export type OpenInput = { kind: 'open'; lane: string; artifact: LaneArtifact; source?: InputSource };

/** Tokens of one lane, as the source said them: boundaries, times and message ids are kept. Each token is one ordinal. */
export type TextInput = {
  kind: 'text';
  lane: string;
  tokens: string[];
  /** Milliseconds of each token after the record's `at`; absent: all zero. */
  dt?: number[];
  /** The source's message id of each token, where it had one (S0-22, S0-40). */
  ids?: string[];
};

/** Closes a lane: its last chunk carries `lastChunk:true`, exactly once (C-2). */
export type CloseInput = { kind: 'close'; lane: string };

/**
 * A whole artifact in one event (a notice, a file, data), or non-text parts for an open lane. Never held: flushes the task's held text first.
 * `append:false` with a lane that is already open replaces its content; `last:true` closes the lane.
 */
export type ArtifactInput = {
  kind: 'artifact';
  lane: string;
  artifact: LaneArtifact;
  parts: Part[];
  append: boolean;
  last: boolean;
  source?: InputSource;
};

/** The task's state as its root producer (the supervisor, or the agent that is called directly) says it. */
export type StatusInput = {
  kind: 'status';
  state: Exclude<TaskState, 'TASK_STATE_SUBMITTED'>;
  message?: Message;
  /** The message is all there is: the agent answered with it and made no task ([A2A 1.0] 3.1.1). */
  direct?: true;
  metadata?: Metadata;
  /** As of an ended call, of the agent that was addressed directly. */
  resume?: unknown;
  /** Messages of the agent that join the history of the task, each once by its id (S1-16, S1-17). */
  history?: Message[];
  source?: InputSource;
};

/** The supervisor hands a part of the task to an agent. Recorded before the work is sent. */
export type CallInput = {
  kind: 'call';
  call: string;
  agent: string;
  /** The agent's states with a message become states of the task, by the task's profile. */
  statusPasses?: true;
};

/** An agent's call is over, or waits for input. Only the producer of that call says it, or the root producer that has given the agent up. */
export type EndedInput = {
  kind: 'ended';
  call: string;
  state: TerminalState | InterruptedState;
  message?: Message;
  /** As of a status. */
  direct?: true;
  /** As of a status. */
  metadata?: Metadata;
  /** As of a status. */
  history?: Message[];
  /** The agent's text where policy keeps it from the client (C-5): for the supervisor alone. */
  withheldText?: string;
  /** Why it failed, for people; never contains message content. */
  reason?: string;
  retryable?: boolean;
  /** What the adapter needs to go on in its next turn (the foreign task's or context's ids). Opaque to everybody else, never shown to clients. */
  resume?: unknown;
};

/**
 * What the root producer must find again should it die: a step of its model, for one. Invisible, opaque to everybody else. Recorded before anything follows from it, so that
 * nothing is decided twice.
 */
export type StepInput = { kind: 'step'; step: string; payload: unknown };

export type AgentInput = OpenInput | TextInput | CloseInput | ArtifactInput | StatusInput | CallInput | EndedInput | StepInput;

/** Who speaks on a task. Ordinals are contiguous per producer, turn and attempt: what belongs to an earlier turn or attempt, or was seen before, is dropped. */
export type Producer = {
  /** `supervisor`, or the call id. Unique in the task. */
  id: string;
  /** Display name of the agent, e.g. `argocd`; `supervisor` for the supervisor. */
  agent: string;
  /** Turn of the task it works on (`Work.turn`): a later message of the client supersedes it. */
  turn: number;
  /** Delivery count of the work item, 1-based: a redelivered job is a new attempt. */
  attempt: number;
};

/** One message on the raw subject, said by a client. */
export type ClientRecord = { v: 1; at: number; from: 'client'; input: ClientInput };

/** One message on the raw subject, said by an agent or the supervisor: a micro-batch with the order and times of the source. */
export type AgentRecord = {
  v: 1;
  /** Epoch milliseconds of the first input in the record. */
  at: number;
  from: Producer;
  /** Ordinal of the first input of the record, 1-based; each token of a text input takes one, every other input takes one. */
  n: number;
  inputs: AgentInput[];
};

/** One message on the raw subject, said by a relay. */
export type RelayRecord = { v: 1; at: number; from: 'relay'; input: RelayInput };

export type InputRecord = ClientRecord | AgentRecord | RelayRecord;

/** How many ordinals an input takes. */
export function ordinalsOf(input: AgentInput): number {
  return input.kind === 'text' ? input.tokens.length : 1;
}
