/**
 * The canonical form of A2A inside Hopline: the JSON of A2A 1.0 (ProtoJSON, with member and enum names as on the wire).
 * Requests are decoded into these types and responses encoded from them; the log stores them. Optional members may be absent:
 * an absent `append`, `lastChunk`, `parts` or `history` means false or empty.
 */

export const TASK_STATES = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
] as const;
export type TaskState = (typeof TASK_STATES)[number];

export type TerminalState = 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED' | 'TASK_STATE_CANCELED' | 'TASK_STATE_REJECTED';
export type InterruptedState = 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_AUTH_REQUIRED';

export type Role = 'ROLE_USER' | 'ROLE_AGENT';

export type Metadata = Record<string, unknown>;

/** Exactly one of text, raw (base64), url, data is present. */
export type Part = {
  text?: string;
  raw?: string;
  url?: string;
  data?: unknown;
  metadata?: Metadata;
  filename?: string;
  mediaType?: string;
};

export type Message = {
  messageId: string;
  role: Role;
  parts: Part[];
  contextId?: string;
  taskId?: string;
  metadata?: Metadata;
  extensions?: string[];
  referenceTaskIds?: string[];
};

export type Artifact = {
  artifactId: string;
  name?: string;
  description?: string;
  parts: Part[];
  metadata?: Metadata;
  extensions?: string[];
  /** Draft 1.1 (A2A-1.1-EXTENSION.md): generation of the event with which the artifact began. */
  startGeneration?: Int64;
  /** Draft 1.1: generation of the event that completed it; absent while it is open. */
  endGeneration?: Int64;
};

/** int64 in ProtoJSON: a decimal string. */
export type Int64 = string;

export type TaskStatus = {
  state: TaskState;
  message?: Message;
  /** UTC, millisecond precision, `…Z`. */
  timestamp?: string;
};

export type Task = {
  id: string;
  contextId: string;
  status: TaskStatus;
  artifacts?: Artifact[];
  history?: Message[];
  metadata?: Metadata;
  /** Draft 1.1: generation of the newest event in the task. */
  generation?: Int64;
  /** Draft 1.1: the statuses of the agent and the messages of the client, in order. */
  timeline?: TimelineEntry[];
};

/** Draft 1.1: exactly one of `message` and `status` is present. `generation`: the generation of the task after the entry. */
export type TimelineEntry = {
  message?: Message;
  status?: TaskStatus;
  generation: Int64;
};

export type TaskStatusUpdateEvent = {
  taskId: string;
  contextId: string;
  status: TaskStatus;
  metadata?: Metadata;
  /** Draft 1.1: generation of the task after this event. */
  generation?: Int64;
};

export type TaskArtifactUpdateEvent = {
  taskId: string;
  contextId: string;
  artifact: Artifact;
  /** true: the parts are appended to the artifact with this id. false or absent: they start or replace it. */
  append?: boolean;
  /** true: no later chunk for this artifact id. */
  lastChunk?: boolean;
  metadata?: Metadata;
  /** Draft 1.1: generation of the task after this event. */
  generation?: Int64;
};

/** One event of a stream: exactly one member. */
export type StreamResponse =
  | { task: Task }
  | { message: Message }
  | { statusUpdate: TaskStatusUpdateEvent }
  | { artifactUpdate: TaskArtifactUpdateEvent };

export function isTerminal(state: TaskState): state is TerminalState {
  return (
    state === 'TASK_STATE_COMPLETED' ||
    state === 'TASK_STATE_FAILED' ||
    state === 'TASK_STATE_CANCELED' ||
    state === 'TASK_STATE_REJECTED'
  );
}

/** The readable name of a state: `input-required` for TASK_STATE_INPUT_REQUIRED. */
export function stateWord(state: TaskState): string {
  return state.replace('TASK_STATE_', '').replaceAll('_', '-').toLowerCase();
}

export function isInterrupted(state: TaskState): state is InterruptedState {
  return state === 'TASK_STATE_INPUT_REQUIRED' || state === 'TASK_STATE_AUTH_REQUIRED';
}

/** The task has not ended and waits for no client. */
export function isInProgress(state: TaskState): boolean {
  return !isTerminal(state) && !isInterrupted(state);
}

/** Whether text may be appended to the part: it has text and no other member. */
export function isPlainText(part: Part): part is { text: string } {
  return part.text !== undefined && Object.keys(part).length === 1;
}

/** A skill on an agent card. The planner matches messages against its tags and examples. */
export type AgentSkill = {
  id: string;
  name: string;
  description: string;
  tags: string[];
  examples?: string[];
  inputModes?: string[];
  outputModes?: string[];
};

/** The card that an agent's own server publishes, in a form for people. The number and length of its texts are bounded. */
export type CardReport = {
  name: string;
  version: string;
  /** The organization that provides the agent; empty if the card names none. */
  provider: string;
  /** Binding and version of each interface, without addresses: `JSONRPC, A2A 1.0`. */
  interfaces: string[];
  /** The flags of `capabilities` that are true. */
  capabilities: string[];
  /** URIs of the offered extensions. */
  extensions: string[];
  inputModes: string[];
  outputModes: string[];
  /** Deviations of the card from the specification: sentences that begin with the path of a member, and contain no text of the card. */
  findings: string[];
};
