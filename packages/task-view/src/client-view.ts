import type { ApprovalRequest, Message, Metadata, Part, TaskState } from '@hopline/a2a/client';

/** A task as a page shows it. Views are immutable: members that did not change are the same objects as in the previous view. */
export type ClientView = {
  /** Undefined until the first event, and for a server that answers with a message and creates no task. */
  taskId: string | undefined;
  contextId: string | undefined;
  state: TaskState;
  /** 1 for the first message. An answer to a question begins the next turn. */
  turn: number;
  /** Position in the stream, for servers that have cursors. */
  cursor: string | undefined;
  /** The answer of the current turn, each text once. Plans, notices, progress and files are not part of it. */
  answer: string;
  /** The texts of the answers of all turns, in the order in which they began. */
  texts: readonly ViewText[];
  /** The newest text of the plan, with the plans of servers below it; '' if there is none. */
  plan: string;
  tools: readonly ViewTool[];
  files: readonly ViewFile[];
  /** The newest line about progress; undefined when the turn has ended. */
  progress: string | undefined;
  /** Set while the task waits for the client. */
  question: ViewQuestion | undefined;
  /** Why the task failed, was rejected or was canceled; undefined without a reason. */
  failure: string | undefined;
  usage: ViewUsage | undefined;
  /** Metadata of the task, merged from all its statuses. */
  metadata: Metadata | undefined;
  /** Number of gaps: events that the server no longer had. The task that follows a gap contains their effect. */
  gaps: number;
};

export type ViewText = {
  /** Id of the artifact or message. */
  id: string;
  channel: 'answer' | 'plan';
  /** The agent that wrote it, and the call that it answers; undefined if the server does not name them. */
  agent: string | undefined;
  callId: string | undefined;
  turn: number;
  text: string;
  isComplete: boolean;
  /** The text belongs to the answer of the current turn. */
  isCurrent: boolean;
};

/** A call of a tool, or of an agent by a supervisor. */
export type ViewTool = {
  /** Pairs the start of the call with its end. */
  id: string;
  tool: string;
  /** The agent that calls it. */
  agent: string | undefined;
  turn: number;
  /**
   * `waiting`: the agent asked a question while the call was open. `unknown`: the turn ended, and the server did not report the end of
   * the call.
   */
  outcome: 'running' | 'completed' | 'failed' | 'waiting' | 'unknown';
  /** Undefined where the agent does not show them. */
  arguments: unknown;
  result: unknown;
  /** The newest notice of the call, for people. */
  notice: string;
};

/** An artifact beside the answer: a file, data, or a report. */
export type ViewFile = {
  /** Id of the artifact. */
  id: string;
  name: string | undefined;
  description: string | undefined;
  agent: string | undefined;
  turn: number;
  parts: readonly Part[];
  /** Bytes of the content so far; a link has none. */
  bytes: number;
  /**
   * Why `parts` is not the whole content so far: the stream began within the artifact, or the files of the task have more than
   * FILE_BYTES_MAX. Undefined if it is whole.
   */
  missing: 'beginning' | 'excess' | undefined;
  isComplete: boolean;
};

export type ViewQuestion = {
  /** `auth`: the agent waits for an authorization outside the conversation. */
  kind: 'input' | 'auth';
  text: string;
  message: Message | undefined;
  /** The call that the agent asks to approve; absent for every other question. */
  approval?: ApprovalRequest;
};

/** Numbers that the server reports, such as `inputTokens` and `outputTokens`. */
export type ViewUsage = Readonly<Record<string, number>>;
