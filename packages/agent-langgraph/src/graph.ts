import type { Message } from '@hopline/a2a';

/** The seam: a LangGraph graph, in this process or behind a server. Both say the same things in the same four stream modes (S1-21). */

/** `messages` is `messages-tuple` of a server: [chunk, metadata]. */
export const MODES = ['values', 'messages', 'custom', 'updates'] as const;
export type Mode = (typeof MODES)[number];

/** One event of a run. `path`: the sub-graph it comes from, outermost first; empty for the graph itself. */
export type GraphEvent = { mode: Mode; path: readonly string[]; chunk: unknown };

export type Interrupt = { id: string; value: unknown };

/** A thread as its newest checkpoint has it. */
export type ThreadState = {
  values: Readonly<Record<string, unknown>>;
  /** Nodes are due: the run before was cut, or waits. */
  unfinished: boolean;
  interrupts: readonly Interrupt[];
  /** What the run of the checkpoint was begun for, where the checkpointer keeps it (a server's does). */
  taskId?: string;
  messageId?: string;
};

/** What a run begins with: new state, the answer to interrupts, or nothing: it goes on from the checkpoint. */
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
  /** Aborts: the run must stop. */
  signal: AbortSignal;
};

export interface Graph {
  /** Keys of the graph's state: `messages` and `a2a_inbox` decide how the message goes in (S1-7, S1-8). */
  stateKeys(signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** undefined: the graph keeps nothing (no checkpointer), or knows nothing of the thread. */
  threadState(thread: string, signal: AbortSignal): Promise<ThreadState | undefined>;
  /** Throws GraphFault for what the graph or its server did. */
  stream(run: GraphRun): AsyncIterable<GraphEvent>;
  /** The user's text as the graph's own type of message. */
  humanMessage(text: string, id: Message['messageId']): unknown;
  describe(signal: AbortSignal): Promise<{ id: string; name: string; description: string }>;
  close(): Promise<void>;
}

/** Why a turn failed: a sentence that holds nothing of what the graph said. */
export class GraphFault extends Error {
  override readonly name = 'GraphFault';
  readonly retryable: boolean;

  constructor(reason: string, retryable = false, options?: ErrorOptions) {
    super(reason, options);
    this.retryable = retryable;
  }
}

/** The class of an error, where it is a plain name: enough to find it in the graph's own log. */
export function failureOf(errorName: unknown): GraphFault {
  if (errorName === 'GraphRecursionError') return new GraphFault('the graph took more steps than its recursion limit');
  const isName = typeof errorName === 'string' && /^[A-Za-z_]\w{0,47}$/.test(errorName);
  return new GraphFault(isName ? `the graph failed: ${errorName}` : 'the graph failed');
}
