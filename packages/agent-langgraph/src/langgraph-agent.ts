import { AbortableEvents, type Agent, type AgentEvent, eventsOf, type Turn } from '@hopline/agent';
import { Deadlines, type MissedDeadline } from '@hopline/outbound-http';
import { type Graph, GraphFault } from './graph.ts';
import { GraphReader, interruptedBy } from './graph-reader.ts';
import { type LocalGraphOptions, openLocalGraph } from './local-graph.ts';
import { ServerGraph, type ServerGraphOptions } from './server-graph.ts';
import { threadOf } from './thread.ts';
import { ThreadLocks } from './thread-locks.ts';
import { planTurn } from './turn-start.ts';

type Limits = {
  /** Longest time between two events of a graph in milliseconds: a node may work silently, and a model may think. */
  silenceMsMax: number;
  /** Duration of one turn. */
  totalMsMax: number;
};

const LANGGRAPH_LIMITS: Limits = { silenceMsMax: 300_000, totalMsMax: 3_600_000 };
const SKILLS_MS_MAX = 10_000;

export type LangGraphOptions = (LocalGraphOptions | ServerGraphOptions) & {
  description?: string;
  limits?: Partial<Limits>;
  /** Receives every custom payload that is not an A2A event, so that it can be counted. */
  onSkipped?: (what: 'custom payload') => void;
};

/** An agent that is a LangGraph graph. Rejects when a local export is not a graph; a server is not contacted before its first use. */
export async function createLangGraphAgent(options: LangGraphOptions): Promise<Agent> {
  const graph = 'url' in options ? new ServerGraph(options) : await openLocalGraph(options);
  const { description = 'A LangGraph graph', onSkipped } = options;
  const limits = { ...LANGGRAPH_LIMITS, ...options.limits };
  const locks = new ThreadLocks();
  const runBatches = (turn: Turn) => withThreadLock(locks, turn, runWithLimits(graph, turn, { limits, onSkipped }));
  return {
    // A graph may write its answer several times: as tokens, as A2A events, and into its state.
    repeatsText: true,
    description,
    skills: async () => {
      const skill = await graph.describe(AbortSignal.timeout(SKILLS_MS_MAX));
      return [{ ...skill, ...(options.description !== undefined && { description }), tags: ['langgraph'] }];
    },
    run: turn => eventsOf(runBatches(turn)),
    runBatches,
    cancelRemoteRun: async (run, trace) => graph.cancelRun?.(run, trace),
    close: () => graph.close(),
  };
}

type Batches = AsyncIterable<readonly AgentEvent[]>;

/** The limits of a turn begin when its thread is free: a turn may wait for another turn of the same context. */
async function* withThreadLock(locks: ThreadLocks, turn: Turn, batches: Batches): AsyncGenerator<readonly AgentEvent[]> {
  const release = await locks.lock(threadOf(turn), turn.signal);
  try {
    if (!turn.signal.aborted) for await (const events of batches) yield events;
  } finally {
    release();
  }
}

type RunOptions = { limits: Limits; onSkipped: LangGraphOptions['onSkipped'] };

async function* runWithLimits(
  graph: Graph,
  turn: Turn,
  { limits, onSkipped }: RunOptions,
): AsyncGenerator<readonly AgentEvent[]> {
  using deadlines = new Deadlines({ ...limits, firstEventMsMax: limits.silenceMsMax }, faultOf, turn.signal);
  const { signal } = deadlines;
  const onGraphEvent = () => deadlines.touch();
  try {
    // A graph may ignore the signal; the turn still ends.
    const run = () => runGraph(graph, { ...turn, signal }, { onGraphEvent, onSkipped });
    for await (const events of new AbortableEvents(run, signal)) {
      deadlines.pause();
      yield events;
      deadlines.resume();
    }
    if (deadlines.fault !== undefined) throw deadlines.fault;
  } catch (error) {
    const fault = deadlines.fault ?? error;
    if (!(fault instanceof GraphFault)) throw error;
    if (fault.cause !== undefined) turn.showError?.(fault.cause);
    yield [{ type: 'failed', reason: fault.message, retryable: fault.retryable, cause: 'graph_failed' }];
  }
}

function faultOf({ limit, ms }: MissedDeadline): GraphFault {
  return new GraphFault(
    limit === 'total' ? `the turn took longer than ${ms / 1000} s` : `the graph sent no event for ${ms / 1000} s`,
  );
}

type GraphListeners = { onGraphEvent: () => void; onSkipped: LangGraphOptions['onSkipped'] };

async function* runGraph(graph: Graph, turn: Turn, { onGraphEvent, onSkipped }: GraphListeners): AsyncGenerator<AgentEvent[]> {
  const { taskId, message, signal, trace } = turn;
  const thread = threadOf(turn);
  const { messageId } = message;
  // A run of an earlier attempt may still be running, because a proxy keeps its connection open. Its results are in the thread, from which
  // this attempt continues.
  for (const run of turn.remoteRuns ?? []) await graph.cancelRun?.(run, trace);
  const [keys, state] = await Promise.all([graph.stateKeys(signal), graph.threadState(thread, signal)]);
  const start = planTurn({ graph, turn, state, keys });
  if (start.kind === 'interrupted') {
    yield [interruptedBy(start.interrupts)];
    return;
  }
  const isContinued = start.kind === 'finished' || start.isContinued;
  const reader = new GraphReader({
    stateBefore: state?.values ?? {},
    ...(isContinued && { continuedFrom: { messageId } }),
    ...(onSkipped && { onSkipped }),
  });
  yield [...reader.begin()];
  if (start.kind === 'finished') reader.values(start.values);
  else {
    for await (const batch of graph.stream({
      thread,
      taskId,
      messageId,
      input: start.input,
      trace,
      signal,
      began: turn.remoteRunBegan,
    })) {
      onGraphEvent();
      const events: AgentEvent[] = [];
      for (const graphEvent of batch) for (const event of reader.read(graphEvent)) events.push(event);
      if (events.length > 0) yield events;
    }
  }
  yield [...reader.end()];
}
