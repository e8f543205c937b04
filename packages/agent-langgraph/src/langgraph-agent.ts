import { type Agent, type AgentEvent, abortableEvents, type Turn } from '@hopline/agent';
import { Deadlines, LANGGRAPH_LIMITS, type Limits } from './deadlines.ts';
import { type Graph, GraphFault } from './graph.ts';
import { GraphReader, interruptedBy } from './graph-reader.ts';
import { type LocalGraphOptions, openLocalGraph } from './local-graph.ts';
import { ServerGraph, type ServerGraphOptions } from './server-graph.ts';
import { threadOf } from './thread.ts';
import { ThreadLocks } from './thread-locks.ts';
import { planTurn } from './turn-start.ts';

export type LangGraphOptions = (LocalGraphOptions | ServerGraphOptions) & {
  description?: string;
  limits?: Partial<Limits>;
  /** Told of every custom payload that is no A2A event: counted, never silent. */
  onSkipped?: (what: 'custom payload') => void;
};

/** An agent that is a LangGraph graph. Rejects when it can be known now that it is none; a server is not asked before it is needed. */
export async function createLangGraphAgent(options: LangGraphOptions): Promise<Agent> {
  const graph = 'url' in options ? new ServerGraph(options) : await openLocalGraph(options);
  const { description = 'A LangGraph graph', onSkipped } = options;
  const limits = { ...LANGGRAPH_LIMITS, ...options.limits };
  const locks = new ThreadLocks();
  return {
    description,
    skills: async () => {
      const known = await graph.describe(AbortSignal.timeout(SKILLS_MS_MAX));
      return [{ ...known, ...(options.description !== undefined && { description }), tags: ['langgraph'] }];
    },
    run: turn => inTurn(locks, turn, play(graph, turn, { limits, onSkipped })),
    close: () => graph.close(),
  };
}

const SKILLS_MS_MAX = 10_000;

type PlayOptions = { limits: Limits; onSkipped: LangGraphOptions['onSkipped'] };

/** The limits of a turn begin when its thread is free: it may wait for another turn of the same context. */
async function* inTurn(locks: ThreadLocks, turn: Turn, events: AsyncIterable<AgentEvent>): AsyncGenerator<AgentEvent> {
  const release = await locks.lock(threadOf(turn), turn.signal);
  try {
    if (!turn.signal.aborted) yield* events;
  } finally {
    release();
  }
}

async function* play(graph: Graph, turn: Turn, { limits, onSkipped }: PlayOptions): AsyncGenerator<AgentEvent> {
  using deadlines = new Deadlines(limits, turn.signal);
  const { signal } = deadlines;
  const heard = () => deadlines.touch();
  try {
    // The graph may not listen to the signal: then it is left alone, and the turn ends.
    for await (const event of abortableEvents(said(graph, { ...turn, signal }, { heard, onSkipped }), signal)) {
      deadlines.reading(true);
      yield event;
      deadlines.reading(false);
    }
    if (deadlines.fault !== undefined) throw deadlines.fault;
  } catch (error) {
    const fault = deadlines.fault ?? error;
    if (!(fault instanceof GraphFault)) throw error;
    yield { type: 'failed', reason: fault.message, retryable: fault.retryable };
  }
}

type Around = { heard: () => void; onSkipped: LangGraphOptions['onSkipped'] };

async function* said(graph: Graph, turn: Turn, { heard, onSkipped }: Around): AsyncGenerator<AgentEvent> {
  const { taskId, message, signal, trace } = turn;
  const thread = threadOf(turn);
  const { messageId } = message;
  const [keys, state] = await Promise.all([graph.stateKeys(signal), graph.threadState(thread, signal)]);
  const start = planTurn({ graph, turn, state, keys });
  if (start.kind === 'asked') {
    yield interruptedBy(start.interrupts);
    return;
  }
  const again = start.kind === 'finished' || start.again;
  const reader = new GraphReader({
    before: state?.values ?? {},
    ...(again && { again: { messageId } }),
    ...(onSkipped && { onSkipped }),
  });
  yield* reader.begin();
  if (start.kind === 'finished') reader.values(start.values);
  else {
    for await (const event of graph.stream({ thread, taskId, messageId, input: start.input, trace, signal })) {
      heard();
      yield* reader.read(event);
    }
  }
  yield* reader.end();
}
