import type { Task, TaskState } from '@hopline/a2a';

/**
 * One request of a client as the client saw it: when it was sent, to which replica, and what came back. `T` is a task as a response shows it:
 * the A2A task itself while the run lasts, and its place among the events of the task (`Shown`) for the checker.
 */
export type Operation<T> = Request & (Send<T> | Read<T> | List<T> | Stream | Cancel<T>);

/** The part that every operation has. */
export type Request = {
  client: string;
  /** Whose credentials the client has. Lists show the tasks of one caller. */
  caller: string;
  replica: string;
  /** Milliseconds by one clock for all clients. */
  begunAt: number;
  /** Infinity if no response came: the request may take effect at any time, or never. */
  endedAt: number;
};

type Send<T> = {
  kind: 'send';
  messageId: string;
  contextId: string;
  /** The task that the request names; undefined if it is the first message. */
  taskId: string | undefined;
  /** `task`: acknowledged, and the response shows this task. `ended`: refused, because the task has ended. */
  result: { task: T } | 'ended' | 'not found' | undefined;
  /** The task of the result has only its state, because the form of April 2025 has no event for a whole task. */
  showsStateOnly?: boolean;
  /**
   * A streaming response begins with this event of the task. Others may have followed it, because a retry reads the events from the first
   * one on.
   */
  beginsWithEvent?: boolean;
};

type Read<T> = { kind: 'read'; taskId: string; result: { task: T } | 'not found' };

type List<T> = {
  kind: 'list';
  /** Undefined: every task of the caller. */
  contextId: string | undefined;
  /** A task whose status changes between two pages moves to the front, so it may be on neither of them. */
  pages: number;
  /** The tasks of all pages, and when the page of each was asked for and received. */
  tasks: readonly { task: T; begunAt: number; endedAt: number }[];
};

/** A streaming response from the subscription to the end of the connection. */
type Stream = {
  kind: 'stream';
  taskId: string;
  /** Generation of the cursor that the client presented. */
  after: number | undefined;
  frames: readonly StreamFrame[];
  /** `cursor`: the server did not take the cursor. `ended`: there is nothing to stream without a cursor. */
  refusal: 'cursor' | 'not found' | 'ended' | undefined;
};

type StreamFrame = {
  at: number;
  generation: number;
  /** The state that the frame shows, if it shows one. */
  state: TaskState | undefined;
  /** True if the frame is the task as it is. */
  isSnapshot: boolean;
};

type Cancel<T> = {
  kind: 'cancel';
  taskId: string;
  /** `ended`: refused, because the task has ended in another way. */
  result: { task: T } | 'ended' | 'not found' | undefined;
};

/** A task as a response shows it, placed among the events of the task. */
export type Shown = {
  taskId: string;
  state: TaskState;
  /** The first and the last generation at which the task was as shown. */
  generation: { from: number; to: number };
  /** Ids of the messages in its history; undefined if a response may leave some out. */
  messageIds: readonly string[] | undefined;
};

/** The operations of a run for the checker, in no particular order. */
export type History = readonly Operation<Shown>[];

/** The operations of a run as its clients recorded them. */
export type RecordedHistory = readonly Operation<Task>[];
