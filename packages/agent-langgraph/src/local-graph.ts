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
import { listOf, stringOf } from './json.ts';

/**
 * The members of a compiled `@langchain/langgraph` graph that are used here. LangGraph is not a dependency: the graph's module has its own
 * copy.
 */
type CompiledGraph = {
  stream(input: unknown, config: object): Promise<AsyncIterable<unknown>>;
  getState(config: object): Promise<{ values?: unknown; next?: unknown; tasks?: unknown }>;
  name?: string;
  channels?: object;
  checkpointer?: unknown;
};

export type LocalGraphOptions = {
  /** A compiled graph, or a function that returns one. */
  graph: unknown;
  /** Stores the threads of a graph that was compiled without a checkpointer. */
  checkpointer?: unknown;
  /** `HumanMessage` of the graph's own `@langchain/core`. Default: `{role, content, id}`, which the reducers of LangGraph convert. */
  HumanMessage?: new (fields: {
    content: string;
    id: string;
  }) => unknown;
  /** `Command` of the graph's own `@langchain/langgraph`. Default: ResumeCommand. */
  Command?: CommandClass;
};

type CommandClass = new (fields: { resume: unknown; update?: Record<string, unknown> }) => unknown;

/** Opens a compiled graph in this process. Rejects with one sentence when the export is something else. */
export async function openLocalGraph({ graph: exported, checkpointer, ...classes }: LocalGraphOptions): Promise<Graph> {
  const graph: unknown = typeof exported === 'function' ? await exported() : exported;
  if (!isCompiled(graph))
    throw new Error('the export is not a compiled graph: it lacks stream or getState (is .compile() missing?)');
  if (checkpointer !== undefined) graph.checkpointer = checkpointer;
  return new LocalGraph(graph, classes);
}

function isCompiled(value: unknown): value is CompiledGraph {
  const { stream, getState } = (value ?? {}) as Partial<CompiledGraph>;
  return typeof stream === 'function' && typeof getState === 'function';
}

class LocalGraph implements Graph {
  readonly #graph: CompiledGraph;
  readonly #HumanMessage: LocalGraphOptions['HumanMessage'];
  readonly #Command: CommandClass;

  constructor(
    graph: CompiledGraph,
    { HumanMessage, Command = ResumeCommand }: Pick<LocalGraphOptions, 'HumanMessage' | 'Command'>,
  ) {
    this.#graph = graph;
    this.#HumanMessage = HumanMessage;
    this.#Command = Command;
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

  async *stream(run: GraphRun): AsyncGenerator<GraphEvent[]> {
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

  async *#run({ thread, taskId, messageId, input, signal }: GraphRun): AsyncGenerator<GraphEvent[]> {
    const configurable = { thread_id: thread, a2a_task_id: taskId, a2a_message_id: messageId };
    const events = await this.#graph.stream(this.#input(input), {
      configurable,
      streamMode: [...MODES],
      subgraphs: true,
      signal,
    });
    for await (const event of events) {
      const [path, mode, chunk] = event as [string[], Mode, unknown];
      yield [{ mode, path, chunk }];
    }
  }

  #input(input: RunInput): unknown {
    if (input.kind === 'state') return input.update;
    if (input.kind === 'continue') return null;
    const { answer: resume, update } = input;
    return new this.#Command({ resume, ...(Object.keys(update).length > 0 && { update }) });
  }
}

/** LangGraph.js recognizes a command by `lg_name`, and since 1.5.0 only on an object that is not plain. */
class ResumeCommand {
  readonly lg_name = 'Command';
  readonly resume: unknown;
  readonly update?: Record<string, unknown>;

  constructor({ resume, update }: { resume: unknown; update?: Record<string, unknown> }) {
    this.resume = resume;
    if (update !== undefined) this.update = update;
  }
}
