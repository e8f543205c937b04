import type {
  InterruptedState,
  Message,
  Metadata,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskState,
  TaskStatusUpdateEvent,
  TerminalState,
} from '@hopline/a2a';
import type { InputSource, LaneArtifact, ProfileName } from './inputs.ts';
import type { Owner } from './owner.ts';
import type { Role } from './subjects.ts';

/**
 * Facts: what happened to a task, in the one order that counts, as stored on `a2a.log.<shard>.<taskId>`.
 * A fact with an `event` is what every client sees; it carries a generation: 1..n, contiguous. A fact without one is for services
 * (and keeps the generation of the event before it). PROTOCOL.md section 4.
 */

/** Why a chunk left the coalescer; free text of a closed list kept in packages/coalesce. */
export type ChunkProvenance = {
  /** Raw sequences of the first and last record the chunk came from, and how many tokens. */
  firstSeq: number;
  lastSeq: number;
  count: number;
  /** Ordinal of the last token that ends in the chunk, counted by the source per attempt. */
  n: number;
  /** UTF-16 units of token n+1 that are out with this chunk too: it was too large for one chunk, or a surrogate pair was kept whole. */
  splitOffset?: number;
  reason: string;
  /** Milliseconds the oldest token of the chunk was held by the relay. */
  heldMs: number;
  /** Epoch milliseconds at which the source said the first and last token. */
  firstAt: number;
  lastAt: number;
  /** Creation contexts of the first and last input (W3C traceparent), where they had one. */
  firstTrace?: string;
  lastTrace?: string;
};

type FactBase = {
  /** Epoch milliseconds of the relay's clock, never decreasing within a task. */
  at: number;
};

type Visible = FactBase & {
  /** 1..n per task, +1 per event, contiguous: the semantics of A2A's draft 1.1 `generation`. */
  generation: number;
};

/** The task exists. The event is the task as submitted, with the caller's message in its history (S0-4). */
export type TaskCreated = Visible & {
  kind: 'task.created';
  event: { task: Task };
  role: Role;
  profile: ProfileName;
  /** Request-level metadata as it came (S1-8). */
  request?: Metadata;
  owner?: Owner;
  /** The conversation so far: earlier tasks of the context and owner, oldest first, at most CONTEXT_TASKS_MAX. */
  earlierTasks?: string[];
};

/** A later message of the client was accepted: it is the newest of the history, and begins turn `turn` (2, 3, …). */
export type MessageReceived = FactBase & { kind: 'message.received'; message: Message; turn: number; request?: Metadata };

export type StatusChanged = Visible & {
  kind: 'status.changed';
  event: { statusUpdate: TaskStatusUpdateEvent };
  /** The task was made for one message of the agent, that of this status: who waits for the answer gets that message. */
  direct?: true;
  /** The call whose agent says it, where it is not the root producer. */
  call?: string;
  /** What the directly addressed agent wants back in its next turn, as `CallEnded.resume`, or the agent of `call`. Never shown to clients. */
  resume?: unknown;
  /** Messages of the agent that join the history with this status. */
  history?: Message[];
  /** Credentials are asked for again while the task waits for them: since when it does, epoch milliseconds. */
  waitingSince?: number;
  source?: InputSource;
};

/** A lane was opened, or opened again by a later attempt or a snapshot: its next chunk has `append:false`. */
export type LaneOpened = FactBase & {
  kind: 'lane.opened';
  lane: string;
  producer: string;
  attempt: number;
  artifact: LaneArtifact;
  source?: InputSource;
};

export type ArtifactUpdated = Visible & {
  kind: 'artifact.updated';
  event: { artifactUpdate: TaskArtifactUpdateEvent };
  lane: string;
  producer: string;
  attempt: number;
  /** Present on chunks that the coalescer made. */
  chunk?: ChunkProvenance;
  /** The artifact leaves the task when the task has ended. */
  transitory?: true;
  source?: InputSource;
};

export type CallStarted = FactBase & {
  kind: 'call.started';
  call: string;
  agent: string;
  /** As of the input. */
  statusPasses?: true;
};

export type CallEnded = FactBase & {
  kind: 'call.ended';
  call: string;
  agent: string;
  state: TerminalState | InterruptedState;
  message?: Message;
  direct?: true;
  metadata?: Metadata;
  history?: Message[];
  withheldText?: string;
  reason?: string;
  retryable?: boolean;
  resume?: unknown;
};

/** The root producer's own record, for whoever conducts the task after it. */
export type StepRecorded = FactBase & { kind: 'step.recorded'; step: string; payload: unknown };

export type Fact =
  | TaskCreated
  | MessageReceived
  | StatusChanged
  | LaneOpened
  | ArtifactUpdated
  | CallStarted
  | CallEnded
  | StepRecorded;
export type VisibleFact = TaskCreated | StatusChanged | ArtifactUpdated;

export function isVisible(fact: Fact): fact is VisibleFact {
  return 'event' in fact;
}

export function eventOf(fact: VisibleFact): StreamResponse {
  return fact.event;
}

/** What the decider must remember of a lane. A closed lane keeps only its owner, so that late text is dropped (S4-19). */
export type LaneState = {
  producer: string;
  attempt: number;
  /** `declared`: no chunk yet. `replacing`: the next chunk replaces what an earlier opening showed. `open`: the next one appends. `closed`: no later chunk. */
  phase: 'declared' | 'replacing' | 'open' | 'closed';
  /** Absent once the lane is closed. */
  artifact?: LaneArtifact;
  /** Last ordinal of the attempt whose text is folded into this lane; 0 before the first. */
  n: number;
  /** UTF-16 units of token n+1 that are folded in too. */
  splitOffset?: number;
};

export type CallState = { agent: string; state?: TerminalState | InterruptedState; statusPasses?: true };

/** Which question of its kind it is in the task, 1-based, and when the task began to wait, epoch milliseconds. */
export type PendingRequest = { n: number; at: number };

/** Newest attempt of a producer, and its last ordinal before which everything is folded, whatever the lane: non-text inputs move it. */
export type ProducerState = { attempt: number; n: number };

/**
 * All the decider knows of a task, and all a new owner of the shard needs: it stands in every record, so takeover reads one message.
 * Bounded: at most LANES_MAX lanes and CALLS_MAX calls (packages/task).
 */
export type TaskAggregate = {
  taskId: string;
  contextId: string;
  state: TaskState;
  generation: number;
  /** `at` of the newest fact. */
  at: number;
  role: Role;
  profile: ProfileName;
  owner?: Owner;
  /** `task.created` names earlier tasks of the conversation. */
  hasHistory?: true;
  /** The newest question: it waits for an answer while the state is input-required. */
  inputRequest?: PendingRequest;
  /** The newest need of credentials: it waits while the state is auth-required. Counted apart: logs from before it was counted keep the numbers of their questions. */
  authRequest?: PendingRequest;
  /** 1-based; +1 for each message the client adds. */
  turn: number;
  /** Message ids of the client already taken into the history (S1-9). Bounded by TURNS_MAX. */
  messageIds: string[];
  lanes: Record<string, LaneState>;
  calls: Record<string, CallState>;
  /** Steps recorded in this turn; absent: none. */
  steps?: number;
  producers: Record<string, ProducerState>;
  /** Every raw record of the task up to and including this raw sequence is folded in, or was dropped for good. */
  foldedSeq: number;
};

/** One message on the log subject: the facts of one decision, stored together or not at all, and the aggregate after them. */
export type FactRecord = {
  v: 1;
  facts: Fact[];
  aggregate: TaskAggregate;
  /**
   * Log sequence of the record with which the task begins, so that a reader starts there (12 ms instead of 150 ms in a million messages): its first one, or the first in which its facts were carried
   * forward. 0 in that record itself.
   */
  startSeq: number;
  /** When the record at `first` was stored, epoch milliseconds. Absent in logs of before 2026-11-22. */
  startStoredAt?: number;
  /** Facts of earlier records, stored again before retention removes those; `facts` is empty then. */
  copied?: CopiedFacts;
};

/** Part 1, 2, … of all facts of a task up to here, as they were. For readers that begin here: who has them passes them over. */
export type CopiedFacts = { part: number; last: boolean; facts: Fact[] };
