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
import type { CallContent, CallEnd } from './call.ts';
import { type AgentStepInput, type InputSource, isSameItem, type Producer, type ProfileName } from './inputs.ts';
import type { Owner } from './owner.ts';
import type { LaneArtifact } from './presentation.ts';
import type { Role } from './subjects.ts';

/**
 * Facts: what happened to a task, in the only order that counts, as stored on `a2a.log.<shard>.<taskId>`. A fact with an `event`
 * is visible: every client sees it, and its generation is 1..n, contiguous. Facts without an event are for services. PROTOCOL.md
 * section 4.
 */

/** Provenance of a chunk that the coalescer made. */
export type ChunkProvenance = {
  /** Raw sequences of the first and last record the chunk came from. */
  firstSeq: number;
  lastSeq: number;
  /** Tokens that end in the chunk. */
  count: number;
  /** Ordinal of the last token that ends in the chunk; the source counts ordinals per attempt. */
  n: number;
  /**
   * UTF-16 units of token n+1 in this chunk and earlier ones, because the token was too large for one chunk, or a
   * surrogate pair was kept whole.
   */
  splitOffset?: number;
  /** Why the coalescer sent the chunk: `FlushReason` of packages/coalesce. */
  reason: string;
  /** Milliseconds for which its producer and the relay held the oldest token of the chunk. */
  heldMs: number;
  /** Milliseconds for which the chunk then waited for the previous append; absent from chunks of an earlier version. */
  waitMs?: number;
  /** Epoch milliseconds of the first and last token, as the source stamped them. */
  firstAt: number;
  lastAt: number;
  /** Creation contexts (W3C traceparent) of the first and last input, if they had one. */
  firstTrace?: string;
  lastTrace?: string;
};

type FactBase = {
  /** Epoch milliseconds of the relay's clock, never decreasing within a task. */
  at: number;
};

type Visible = FactBase & {
  /** 1..n per task, contiguous, +1 per event, as for `generation` in A2A's draft 1.1. The only exception is `lostAfter`. */
  generation: number;
  /**
   * Present on the first event of a task after the log has lost records or may have lost some: the generation of the previous event. The
   * generation of the event itself is the time in epoch milliseconds, so that no client mistakes it for an event that it has already
   * received.
   */
  lostAfter?: number;
};

/** The task was created. The event is the task as submitted, with the caller's message in its history. */
export type TaskCreated = Visible & {
  kind: 'task.created';
  event: { task: Task };
  role: Role;
  profile: ProfileName;
  /** Request-level metadata, as in the input. */
  request?: Metadata;
  owner?: Owner;
  /** Earlier tasks of the same owner and context, oldest first, at most CONTEXT_TASKS_MAX. */
  earlierTasks?: string[];
};

/** A later message of the client was accepted. It is the newest message of the history and begins turn `turn` (2, 3, …). */
export type MessageReceived = FactBase & { kind: 'message.received'; message: Message; turn: number; request?: Metadata };

export type StatusChanged = Visible & {
  kind: 'status.changed';
  event: { statusUpdate: TaskStatusUpdateEvent };
  /** True if the agent created no task: the message of this status is its whole answer and the result of a blocking send. */
  direct?: true;
  /** The call whose agent reported the status; absent if the root producer did. */
  call?: string;
  /** Like `CallEnd.resume`, but for the agent of `call` or for the agent that was addressed directly. */
  resume?: unknown;
  /** Messages of the agent that join the history with this status. */
  history?: Message[];
  /**
   * Set when credentials are requested again while the task still waits for them: the time at which the wait began, in epoch milliseconds.
   */
  waitingSince?: number;
  source?: InputSource;
};

/** A lane was opened, or was opened again by a later attempt or a snapshot. Its next chunk has `append:false`. */
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
  /** Only on chunks that the coalescer made. */
  chunk?: ChunkProvenance;
  /** The artifact leaves the task when the task ends. */
  transitory?: true;
  source?: InputSource;
};

/** If the fact has the content of its input, the relay that stored it queues the call's work item. */
export type CallStarted = FactBase & {
  kind: 'call.started';
  call: string;
  agent: string;
  /** See `CallInput`. */
  statusPasses?: true;
} & Partial<CallContent>;

export type CallEnded = FactBase & { kind: 'call.ended'; call: string; agent: string } & CallEnd;

/** State of the root producer, for the process that continues the task after a crash. */
export type StepRecorded = FactBase & { kind: 'step.recorded'; step: string; payload: unknown };

/** An attempt of `producer` began a run on a server outside of the cluster (`RemoteRunInput`). A later attempt cancels or continues it. */
export type RemoteRunStarted = FactBase & { kind: 'remote-run.started'; producer: string; attempt: number; run: unknown };

/** A step of the producer's own code, as its input describes it (`AgentStepInput`). */
export type AgentStepRecorded = FactBase &
  Omit<AgentStepInput, 'kind'> & { kind: 'agent-step.recorded'; producer: string; attempt: number };

export type Fact =
  | TaskCreated
  | MessageReceived
  | StatusChanged
  | LaneOpened
  | ArtifactUpdated
  | CallStarted
  | CallEnded
  | StepRecorded
  | RemoteRunStarted
  | AgentStepRecorded;
export type VisibleFact = TaskCreated | StatusChanged | ArtifactUpdated;

export function isVisible(fact: Fact): fact is VisibleFact {
  return 'event' in fact;
}

const KINDS: ReadonlySet<string> = new Set<Fact['kind']>([
  'task.created',
  'message.received',
  'status.changed',
  'lane.opened',
  'artifact.updated',
  'call.started',
  'call.ended',
  'step.recorded',
  'remote-run.started',
  'agent-step.recorded',
]);

/** A later version may store facts of other kinds, which readers skip. */
export function isKnownFact({ kind }: Fact): boolean {
  return KINDS.has(kind);
}

export function eventOf(fact: VisibleFact): StreamResponse {
  return fact.event;
}

/** The decider's state of a lane. A closed lane no longer has its artifact, but keeps its producer, so that late text is rejected. */
export type LaneState = {
  producer: string;
  attempt: number;
  /**
   * `declared`: no chunk yet. `replacing`: the next chunk replaces what an earlier opening showed. `open`: the next chunk
   * appends. `closed`: no chunk follows.
   */
  phase: 'declared' | 'replacing' | 'open' | 'closed';
  /** Absent once the lane is closed. */
  artifact?: LaneArtifact;
  /** Newest ordinal of the attempt whose text is folded into this lane; 0 before the first. */
  n: number;
  /** UTF-16 units of token n+1 that are already folded. */
  splitOffset?: number;
};

/** `authRequest`: the request for credentials for which the agent of the call waits. */
export type CallState = {
  agent: string;
  state?: TerminalState | InterruptedState;
  statusPasses?: true;
  authRequest?: CallAuthRequest;
};

/**
 * The message and the `resume` of the request. Both are absent if they have more than CALL_AUTH_UNITS_MAX UTF-16 units of JSON
 * (packages/task).
 */
export type CallAuthRequest = { message?: Message; resume?: unknown };

/**
 * A request for input or credentials. `n`: its number among the task's requests of this kind, from 1. `at`: when the wait began, in epoch
 * milliseconds.
 */
export type PendingRequest = { n: number; at: number };

/** State folded from a producer's newest attempt. */
export type ProducerState = {
  /** Work item of the first run that wrote. Inputs of other items are rejected. Absent if it was written by a version without items. */
  item?: number;
  attempt: number;
  /** Ordinal up to which all of its inputs are folded. Inputs other than text advance it. */
  n: number;
  /**
   * Last ordinal in the raw records up to `foldedSeq`. If the next record that a new owner reads begins with a number more than one above
   * it, inputs were lost. Valid only while `lastNSeq` equals `foldedSeq`. Absent: unknown.
   */
  lastN?: number;
};

/**
 * The decider's complete state of a task. Every record holds it, so a new owner of the shard reads one message per task. Bounded by
 * TURN_LANES_MAX lanes and TURN_CALLS_MAX calls (packages/task).
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
  /** True if `task.created` names earlier tasks of the context. */
  hasHistory?: true;
  /** The newest request for input. It is waiting while the state is input-required. */
  inputRequest?: PendingRequest;
  /** The newest request for credentials. It is waiting while the state is auth-required. */
  authRequest?: PendingRequest;
  /** True if the newest status is a queue notice. Another status without a message replaces it, even in the same state. */
  queued?: true;
  /** 1-based, +1 for each later message of the client. */
  turn: number;
  /** Ids of the client messages in the history, to reject duplicates. Bounded by TURNS_MAX. */
  messageIds: string[];
  lanes: Record<string, LaneState>;
  calls: Record<string, CallState>;
  /** Steps recorded in this turn. Absent: none. */
  steps?: number;
  producers: Record<string, ProducerState>;
  /** Every raw record of the task up to and including this raw sequence is folded in or rejected for good. */
  foldedSeq: number;
  /**
   * The `foldedSeq` to which `lastN` of the producers belongs. If it differs from `foldedSeq`, a version that does not know `lastN` has
   * written in the meantime.
   */
  lastNSeq?: number;
  /** Bytes of the task's records before this one, without copies. If absent, bytes are counted from this record on. */
  storedBytes?: number;
};

/** Looks up a member by name. A plain access would find `constructor` in every object, and producers may choose names like that. */
export function entryOf<T>(entries: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(entries, name) ? entries[name] : undefined;
}

/** One message on the log subject: the facts of one or more decisions, which are stored atomically, and the aggregate after them. */
export type FactRecord = {
  v: 1;
  facts: Fact[];
  aggregate: TaskAggregate;
  /**
   * Log sequence of the record with which the task begins: its first record, or the first part of its newest copy. 0 in the first record
   * itself. Starting there, a read takes 12 ms instead of 150 ms in a log of a million messages.
   */
  startSeq: number;
  /** When the record at `startSeq` was stored, epoch milliseconds. */
  startStoredAt: number;
  /** Facts of earlier records, stored again before retention removes them. `facts` is then empty. */
  copied?: CopiedFacts;
  /**
   * Present in the first record that a relay stores of an open task that began under another owner of the shard. Used only for
   * measurements.
   */
  takeover?: Takeover;
};

/**
 * When a relay took over the shard, in epoch milliseconds, and why: the shard had no owner (`fresh`), its owner released it, its owner died
 * (`lost`), or it failed in the same process (`restarted`).
 */
export type Takeover = { at: number; cause: 'fresh' | 'released' | 'lost' | 'restarted' };

/**
 * One part (1, 2, …) of all the task's facts so far, unchanged, for readers that begin here. Other readers already have these facts and
 * skip the part.
 */
export type CopiedFacts = { part: number; last: boolean; facts: Fact[] };

/** Last ordinal that relays have folded from an attempt at a work item; 0 if the log shows none, or another attempt. */
export function foldedOrdinal(
  { producers }: TaskAggregate,
  { id, item, attempt }: Pick<Producer, 'id' | 'item' | 'attempt'>,
): number {
  const folded = producers[id];
  if (folded === undefined || folded.attempt !== attempt || !isSameItem(folded, { item })) return 0;
  return Math.max(folded.n, folded.lastN ?? 0);
}

/**
 * Whether relays have folded inputs of this attempt. If so, a run that begins knows that there was another run of the same attempt: a
 * nats-server that was killed may forget a delivery and give the next one the same count. The ids of appends reveal that only within the
 * duplicate window.
 */
export function hasWritten(aggregate: TaskAggregate, producer: Pick<Producer, 'id' | 'item' | 'attempt'>): boolean {
  return foldedOrdinal(aggregate, producer) > 0;
}
