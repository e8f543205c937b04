import { isObject } from '@hopline/a2a';
import {
  failureOf,
  type Graph,
  type GraphEvent,
  GraphFault,
  type GraphRun,
  MODES,
  type Mode,
  type RunInput,
  type ThreadState,
} from './graph.ts';
import { readInterrupts } from './graph-reader.ts';
import { type JsonObject, listOf, stringOf } from './json.ts';

/** What of a compiled graph of `@langchain/langgraph` is used. Nothing of LangGraph is imported: the graph brings its own. */
type CompiledGraph = {
  stream(input: unknown, config: object): Promise<AsyncIterable<unknown>>;
  getState(config: object): Promise<{ values?: unknown; next?: unknown; tasks?: unknown }>;
  name?: string;
  channels?: object;
  checkpointer?: unknown;
};

export type LocalGraphOptions = {
  /** A compiled graph, or a function that makes one. */
  graph: unknown;
  /** Keeps threads; for a graph that was compiled without one. */
  checkpointer?: unknown;
  /** `HumanMessage` of the graph's own `@langchain/core`; without it messages are `{role, content, id}`, which its reducers understand. */
  HumanMessage?: new (fields: {
    content: string;
    id: string;
  }) => unknown;
};

/** A compiled graph in this process. Rejects with an Error of one sentence when it is none. */
export async function openLocalGraph({ graph: given, checkpointer, HumanMessage }: LocalGraphOptions): Promise<Graph> {
  const graph: unknown = typeof given === 'function' ? await given() : given;
  if (!isCompiled(graph))
    throw new Error('the export is no compiled graph: it has no stream and getState (is .compile() missing?)');
  if (checkpointer !== undefined) graph.checkpointer = checkpointer;
  return new LocalGraph(graph, HumanMessage);
}

function isCompiled(value: unknown): value is CompiledGraph {
  const { stream, getState } = (value ?? {}) as Partial<CompiledGraph>;
  return typeof stream === 'function' && typeof getState === 'function';
}

class LocalGraph implements Graph {
  readonly #graph: CompiledGraph;
  readonly #HumanMessage: LocalGraphOptions['HumanMessage'];

  constructor(graph: CompiledGraph, HumanMessage: LocalGraphOptions['HumanMessage']) {
    this.#graph = graph;
    this.#HumanMessage = HumanMessage;
  }

  async stateKeys(): Promise<ReadonlySet<string>> {
    return new Set(Object.keys(this.#graph.channels ?? {}));
  }

  async threadState(thread: string): Promise<ThreadState | undefined> {
    if (!isObject(this.#graph.checkpointer)) return undefined;
    const { values, next, tasks } = await this.#graph.getState({ configurable: { thread_id: thread } });
    return {
      values: isObject(values) ? values : {},
      unfinished: listOf(next).length > 0 || listOf(tasks).length > 0,
      interrupts: listOf(tasks).flatMap(task => (isObject(task) ? readInterrupts(task.interrupts) : [])),
    };
  }

  async *stream(run: GraphRun): AsyncGenerator<GraphEvent> {
    try {
      yield* this.#run(run);
    } catch (error) {
      if (run.signal.aborted || error instanceof GraphFault) throw error;
      const fault = failureOf(error instanceof Error ? error.name : undefined);
      throw new GraphFault(fault.message, fault.retryable, { cause: error });
    }
  }

  humanMessage(text: string, id: string): unknown {
    return this.#HumanMessage === undefined ? { role: 'user', content: text, id } : new this.#HumanMessage({ content: text, id });
  }

  async describe() {
    const name = stringOf(this.#graph.name) ?? 'LangGraph';
    return { id: 'graph', name, description: 'A LangGraph graph' };
  }

  async close(): Promise<void> {}

  async *#run({ thread, taskId, messageId, input, signal }: GraphRun): AsyncGenerator<GraphEvent> {
    const configurable = { thread_id: thread, a2a_task_id: taskId, a2a_message_id: messageId };
    const events = await this.#graph.stream(inputOf(input), { configurable, streamMode: [...MODES], subgraphs: true, signal });
    for await (const event of events) {
      const [path, mode, chunk] = event as [string[], Mode, unknown];
      yield { mode, path, chunk };
    }
  }
}

/** LangGraph knows a command by this name, not by its class: a copy of its own would not be the graph's. */
function inputOf(input: RunInput): JsonObject | null {
  if (input.kind === 'state') return input.update;
  if (input.kind === 'continue') return null;
  const { answer: resume, update } = input;
  return { lg_name: 'Command', resume, ...(Object.keys(update).length > 0 && { update }) };
}
