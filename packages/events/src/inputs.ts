import type { Message, Metadata, Part, TaskState } from '@hopline/a2a';
import type { CallContent, CallEnd } from './call.ts';
import type { Owner } from './owner.ts';
import type { LaneArtifact } from './presentation.ts';
import type { Role, Writer } from './subjects.ts';
import type { TokenUsage } from './token-usage.ts';

/**
 * Inputs: requests of clients and output of agents, as stored on `a2a.raw.<shard>.<taskId>.<writer>`. The relay decides on them and stores
 * facts; clients only ever see facts. PROTOCOL.md section 3.
 */

/**
 * Name of a profile (packages/profiles): 1 to 32 of a-z, 0-9 and -. Only the supervisor looks up the profile; records contain the
 * presentation that follows from it.
 */
export type ProfileName = string;

/** A client sends a message: the first one creates the task, a later one continues it. */
export type MessageInput = {
  kind: 'message';
  message: Message;
  contextId: string;
  /** The role that works on the task. Only read when the task is created. */
  role: Role;
  /** Only read when the task is created. */
  profile: ProfileName;
  /** Request-level metadata without the reserved keys, otherwise unchanged. */
  metadata?: Metadata;
  /** Only read when the task is created. Absent if authentication is off. */
  owner?: Owner;
  /** Earlier tasks of the same owner in this context, oldest first. Only read when the task is created. */
  earlierTasks?: string[];
  /**
   * True if the task existed when the message was accepted. If the task then has no facts, the message is rejected instead of creating it.
   */
  continues?: true;
  /** The message is accepted only if the task is at this generation. Not read when the task is created. */
  ifGeneration?: number;
  /**
   * The turn whose question the message answers; it is rejected unless the task waits for input in this turn. Unlike a generation, a turn is the same
   * when lost facts are decided again. Not read when the task is created.
   */
  ifTurn?: number;
  /** True if the server made the task id for this message, so that no other message can have created the task. */
  creates?: true;
};

export type CancelInput = { kind: 'cancel'; metadata?: Metadata };

/** An input of a kind that this version does not know. It is rejected but takes its ordinal. */
export type UnknownInput = { kind: 'unknown' };

/**
 * A producer's input that cannot be read, because a member has a wrong type or it nests too deeply. It takes one ordinal and makes its task
 * fail.
 */
type MalformedInput = { kind: 'malformed' };

export type ClientInput = MessageInput | CancelInput | UnknownInput;

/**
 * The task has waited too long for an answer (`timeout`) or for credentials (`auth-timeout`). The relay appends it to the inputs, because
 * their order decides. An answer that was stored earlier wins, even if no relay has folded it yet.
 */
export type TimeoutInput = {
  kind: 'timeout' | 'auth-timeout';
  /** `PendingRequest.n` of the request that timed out. */
  request: number;
};

/**
 * The first facts of an open task are about to expire, so the relay has to store them again. `startStoredAt` names the start that expires
 * (`FactRecord.startStoredAt`). If that start was already copied forward, there is nothing to do.
 */
export type CopyForwardInput = {
  kind: 'copy-forward';
  startStoredAt: number;
  /** Epoch milliseconds. A task in progress whose newest fact is older than this has no worker. Absent: `startStoredAt` is used instead. */
  idleSince?: number;
};

/**
 * No worker of the turn has a work item any longer, and all inputs of the turn precede this one. So if the turn is still open when this
 * input is folded, the input that ended it was removed before a relay read it.
 */
export type WorkGoneInput = {
  kind: 'work-gone';
  turn: number;
  /** The call whose agent has no item; absent: the root producer. */
  call?: string;
  /** `item`: no input was removed, but the queue has lost the work item of a turn that has begun. Absent: inputs may have been removed. */
  lost?: 'item';
};

/**
 * The turn's work item waits for a free slot of its role. If the turn has not begun when this input is folded, the message becomes a status
 * that leaves the state as it is.
 */
export type TurnQueuedInput = { kind: 'queued'; turn: number; message: Message };

/** Inputs that relays append for themselves, so that the log puts them in order with all others. */
export type RelayInput = TimeoutInput | CopyForwardInput | WorkGoneInput | TurnQueuedInput | UnknownInput;

/** The place within the agent that an input comes from. Kept in the log, never shown to clients. */
export type InputSource = {
  /** The agent's own name of the stream, e.g. `messages` or `custom` of a LangGraph graph. */
  mode: string;
  /** A step of the agent's own plan, e.g. a node of a graph. */
  node?: string;
};

/**
 * Opens a lane: a run of text that becomes one artifact. Lane names are unique in a task; only the producer that opened a lane writes to
 * it. If it is opened again (by a new attempt, or by a snapshot that replaces it), the next chunk replaces what was streamed
 * (`append:false`, C-5).
 */
export type OpenInput = { kind: 'open'; lane: string; artifact: LaneArtifact; source?: InputSource };

/** Tokens of one lane as the source produced them, with their boundaries, times and message ids. Each token takes one ordinal. */
export type TextInput = {
  kind: 'text';
  lane: string;
  tokens: string[];
  /** Milliseconds of each token after the record's `at`. Absent: all zero. */
  dt?: number[];
  /** The source's message id of each token; `''` for a token without one. */
  ids?: string[];
};

/** Closes a lane. Exactly one chunk of its artifact, the last one, has `lastChunk:true`. */
export type CloseInput = { kind: 'close'; lane: string };

/**
 * A whole artifact in one event (a notice, a file, data), or non-text parts for an open lane. The relay never holds it, and flushes the
 * held text of the task before it. `append:false` on an open lane replaces its content; `last:true` closes the lane.
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

/** The task's state, from its root producer: the supervisor, or the agent that was addressed directly. */
export type StatusInput = {
  kind: 'status';
  state: Exclude<TaskState, 'TASK_STATE_SUBMITTED'>;
  message?: Message;
  /** The agent answered with only this message and created no task ([A2A 1.0] 3.1.1). */
  direct?: true;
  metadata?: Metadata;
  /** Like `CallEnd.resume`, but for the agent that was addressed directly. */
  resume?: unknown;
  /** Messages of the agent that are added to the task's history, each id once. */
  history?: Message[];
  source?: InputSource;
};

/**
 * The agent's work item waits for a free slot. If it comes from the root producer, in a profile whose progress is a status, it becomes a
 * status with the message, which leaves the state as it is. An input without a message means that the wait is over: a status without a
 * message replaces the earlier one.
 */
export type QueuedInput = { kind: 'queued'; message?: Message };

/**
 * The supervisor delegates a part of the task to an agent. The input holds everything that the agent's work item needs, and the relay that
 * stores the call queues that item. Without `presentation` and `message` the supervisor queues it itself, because an earlier version wrote
 * the input, or because they are too large.
 */
export type CallInput = {
  kind: 'call';
  call: string;
  agent: string;
  /** True if the agent itself reports that the task is working, with or without a message. */
  statusPasses?: true;
} & Partial<CallContent>;

/** A call has ended or waits for input. Written by the producer of that call, or by the root producer if it abandons the agent. */
export type EndedInput = { kind: 'ended'; call: string } & CallEnd;

/**
 * State that the root producer needs after a crash, such as a step of its model. Opaque to all other readers, never shown to clients.
 * Stored before any action that follows from it, so that nothing is decided twice.
 */
export type StepInput = { kind: 'step'; step: string; payload: unknown };

/**
 * The attempt has begun a run on a server outside of the cluster: a task of a remote agent, a run of a LangGraph server, a request of an
 * MCP session. `run` is what the agent's adapter needs to cancel it after this process has died. It is opaque to all other readers and not
 * shown to clients, except that the audit of the task shows its owner the `taskId` of a remote agent.
 */
export type RemoteRunInput = { kind: 'remote-run'; run: unknown };

/**
 * How a step of an agent's own code ended: with a JSON value (absent for undefined), or with what it threw. `data`: the other members of a
 * model's error.
 */
export type StepOutcome = { value?: unknown; error?: { name: string; message: string; data?: unknown } };

/**
 * A step of an agent's own code, by its name and how often the turn has used it (`n`, from 1 on). `reached`: the attempt has reached the
 * step and may run it; if it follows `stored` or `reused` of the same attempt, that outcome no longer counts. `stored`: the step ended with
 * this outcome. `reused`: the attempt uses the outcome that attempt `of` has stored. The next attempt reads these inputs, and audits read
 * them without the outcome. They are never shown to clients.
 */
export type AgentStepInput = {
  kind: 'agent-step';
  step: string;
  n: number;
  phase: 'reached' | 'stored' | 'reused';
  /** Present if the phase is `stored`. */
  outcome?: StepOutcome;
  /** The attempt that has stored the outcome; present if the phase is `reused`. */
  of?: number;
};

export type AgentInput =
  | OpenInput
  | TextInput
  | CloseInput
  | ArtifactInput
  | StatusInput
  | QueuedInput
  | CallInput
  | EndedInput
  | StepInput
  | RemoteRunInput
  | AgentStepInput
  | MalformedInput
  | UnknownInput;

export type InputKind = (ClientInput | RelayInput | AgentInput)['kind'];

/**
 * A source of inputs on a task. Ordinals are contiguous per producer, turn and attempt. Inputs of an earlier turn or attempt, and ordinals
 * that were seen before, are rejected.
 */
export type Producer = {
  /** `supervisor`, or the call id. Unique in the task. */
  id: string;
  /** Display name of the agent, e.g. `argocd`; `supervisor` for the supervisor. */
  agent: string;
  /** The turn it works on (`Work.turn`). A later message of the client supersedes it. */
  turn: number;
  /**
   * Stream sequence of the work item for which it runs. One call may have two stored items; only the inputs of the one that writes first
   * are folded. Absent if the input was written outside a work item, or by a version without this member.
   */
  item?: number;
  /** Delivery count of the work item, 1-based: a redelivered item is a new attempt. */
  attempt: number;
};

type OfItem = { item?: number | undefined };

/** Whether two runs belong to deliveries of the same stored work item. A run from a version without items matches every item. */
export function isSameItem(one: OfItem, other: OfItem): boolean {
  return one.item === undefined || other.item === undefined || one.item === other.item;
}

/** One message on the raw subject, appended on behalf of a client. */
export type ClientRecord = { v: 1; at: number; from: 'client'; input: ClientInput };

/** When and why a worker took its work item, in epoch milliseconds. Used only for measurements. */
export type TakenWork = {
  /** `Work.queuedAt`; absent when unknown. */
  queuedAt?: number;
  at: number;
  /** Present on a later delivery: `requeue` if the previous worker returned the item, `redelivery` if that worker failed or died. */
  cause?: 'requeue' | 'redelivery';
};

/** A completed tool call of an agent: its name, beginning (epoch milliseconds) and duration. Used only for measurements. */
export type ToolTiming = { name: string; at: number; ms: number };

/**
 * A completed request to a model: its beginning (epoch milliseconds) and duration, and its tokens and cost if they are known. The currency
 * is that of the price file. Used only for measurements.
 */
export type ModelTiming = TokenUsage & { model: string; at: number; ms: number; cost?: number };

/** One message on the raw subject, from an agent or the supervisor: a micro-batch with the order and times of the source. */
export type AgentRecord = {
  v: 1;
  /** Epoch milliseconds of the first input in the record. */
  at: number;
  from: Producer;
  /** Ordinal of the first input, 1-based. Each token of a text input takes one ordinal, every other input takes one. */
  n: number;
  inputs: AgentInput[];
  /**
   * Milliseconds for which the writer held the oldest token, if the record has text and its writer holds text by the rule of the coalescer.
   * The relay then does not hold the text again. Absent: the relay holds it.
   */
  heldMs?: number;
  /** Present in the first record of an attempt. */
  taken?: TakenWork;
  /** Tool calls that have ended since the previous record. */
  tools?: ToolTiming[];
  /** Requests to models that have ended since the previous record. */
  models?: ModelTiming[];
};

/** One message on the raw subject, from a relay. */
export type RelayRecord = { v: 1; at: number; from: 'relay'; input: RelayInput };

export type InputRecord = ClientRecord | AgentRecord | RelayRecord;

/** The writer of a record. For a client's input it is ingress, although the server of an agent appends some too. */
export function writerOf({ from }: InputRecord): Writer {
  if (from === 'client' || from === 'relay') return from;
  return from.id === 'supervisor' ? 'supervisor' : `agent.${from.agent}`;
}

/**
 * Whether the writer named in the subject may append the record. NATS limits who may publish on a subject, and this function limits what a
 * record on it may claim: the server of an agent may begin only tasks of that agent, and no service may write for another producer.
 */
export function mayAppend(writer: Writer, record: InputRecord): boolean {
  if (record.from !== 'client' || writer === 'client') return writer === writerOf(record);
  return writer.startsWith('agent.') && (record.input.kind !== 'message' || record.input.role === writer);
}

/** Number of ordinals the input takes. */
export function ordinalsOf(input: AgentInput): number {
  return input.kind === 'text' ? input.tokens.length : 1;
}
