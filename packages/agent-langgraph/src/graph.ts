import type { Message } from '@hopline/a2a';

/** The interface to a LangGraph graph, in this process or behind a server. Both stream the same four modes. */

/** Stream modes. A LangGraph server calls `messages` `messages-tuple`, and sends [chunk, metadata]. */
export const MODES = ['values', 'messages', 'custom', 'updates'] as const;
export type Mode = (typeof MODES)[number];

/** One event of a run. `path` names the sub-graph of the event, outermost first; it is empty for the graph itself. */
export type GraphEvent = { mode: Mode; path: readonly string[]; chunk: unknown };

export type Interrupt = { id: string; value: unknown };

/** The newest checkpoint of a thread. */
export type ThreadState = {
  values: Readonly<Record<string, unknown>>;
  /** True if nodes are due: the previous run was cut off or is interrupted. */
  unfinished: boolean;
  interrupts: readonly Interrupt[];
  /** The task and message that started the checkpoint's run, if the checkpointer keeps them, as a server's does. */
  taskId?: string;
  messageId?: string;
};

/** The input of a run: new state, the answer to interrupts, or nothing, which continues from the checkpoint. */
export type RunInput =
  | { kind: 'state'; update: Record<string, unknown> }
  | { kind: 'resume'; answer: unknown; update: Record<string, unknown> }
  | { kind: 'continue' };

export type GraphRun = {
  thread: string;
  taskId: string;
  messageId: string;
  input: RunInput;
  trace: { traceparent?: string; tracestate?: string };
  /** The run must stop when this signal aborts. */
  signal: AbortSignal;
  /** Called with the state that `cancelRun` needs, once the run has begun on a server. */
  began?: ((run: unknown) => void) | undefined;
};

export interface Graph {
  /** Keys of the graph's state: whether it has `messages` or `a2a_inbox` determines the form of the input. */
  stateKeys(signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** Returns undefined when the graph has no checkpointer, or the thread does not exist. */
  threadState(thread: string, signal: AbortSignal): Promise<ThreadState | undefined>;
  /** The events of a run, in arrays of those that arrive together. Throws GraphFault for failures of the graph or its server. */
  stream(run: GraphRun): AsyncIterable<readonly GraphEvent[]>;
  /** Cancels a run that some process has reported by `began`; only for servers. See `Agent.cancelRemoteRun`. */
  cancelRun?(run: unknown, trace: GraphRun['trace']): Promise<void>;
  /** Creates a message with the user's text in the graph's own message type. */
  humanMessage(text: string, id: Message['messageId']): unknown;
  describe(signal: AbortSignal): Promise<{ id: string; name: string; description: string }>;
  close(): Promise<void>;
}

/** Why a turn failed: one sentence without any output of the graph. */
export class GraphFault extends Error {
  override readonly name = 'GraphFault';
  readonly retryable: boolean;

  constructor(reason: string, retryable = false, options?: ErrorOptions) {
    super(reason, options);
    this.retryable = retryable;
  }
}

/** The reason contains the class of the error if that is a plain name, so that the error can be found in the graph's own log. */
export function failureOf(errorName: unknown): GraphFault {
  if (errorName === 'GraphRecursionError') return new GraphFault('the graph exceeded its recursion limit');
  const isName = typeof errorName === 'string' && /^[A-Za-z_]\w{0,47}$/.test(errorName);
  return new GraphFault(isName ? `the graph failed: ${errorName}` : 'the graph failed');
}
