import { isObject, JsonStream } from '@hopline/a2a';
import { type CancelRequest, RemoteRunCancels } from '@hopline/agent';
import {
  failureOf,
  type Graph,
  type GraphEvent,
  GraphFault,
  type GraphRun,
  MODES,
  type RunInput,
  type ThreadState,
} from './graph.ts';
import { readInterrupts } from './graph-reader.ts';
import { type JsonObject, listOf, stringOf } from './json.ts';
import { ServerClient } from './server-client.ts';
import { uuidOf } from './thread.ts';

export type ServerGraphOptions = {
  /** URL of a LangGraph server for Python or JavaScript: `langgraph dev`, `langgraph up`, or the platform. */
  url: string;
  /** A graph name from the server's `langgraph.json`, or the id of an assistant. */
  assistant: string;
  /** Sent with every request, e.g. `x-api-key`. */
  headers?: Readonly<Record<string, string>>;
};

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Statuses after which a request is repeated: timeout, too early, too many requests. */
const BUSY: readonly number[] = [408, 425, 429];
/** The modes under their names on a server. */
const SERVER_MODES = MODES.map(mode => (mode === 'messages' ? 'messages-tuple' : mode));

/** A graph behind a LangGraph server. */
export class ServerGraph implements Graph {
  readonly #client: ServerClient;
  readonly #assistant: string;
  readonly #cancels = new RemoteRunCancels();
  #keys: ReadonlySet<string> | undefined;

  constructor({ url, assistant, headers }: ServerGraphOptions) {
    this.#client = new ServerClient(url, headers);
    this.#assistant = assistant;
  }

  async stateKeys(signal: AbortSignal): Promise<ReadonlySet<string>> {
    if (this.#keys !== undefined) return this.#keys;
    const { assistant_id: id } = await this.#assistantOf(signal);
    const schemas = await this.#client.json(`/assistants/${encodeURIComponent(String(id))}/schemas`, { signal, method: 'GET' });
    const { state_schema: state } = isObject(schemas) ? schemas : {};
    const properties = isObject(state) && isObject(state.properties) ? state.properties : {};
    this.#keys = new Set(Object.keys(properties));
    return this.#keys;
  }

  async threadState(thread: string, signal: AbortSignal): Promise<ThreadState | undefined> {
    const state = await this.#client.json(`/threads/${threadIdOf(thread)}/state`, { signal, method: 'GET' });
    if (!isObject(state)) return undefined;
    const { values, next, tasks, metadata } = state;
    const { a2a_task_id: task, a2a_message_id: message } = isObject(metadata) ? metadata : {};
    const taskId = stringOf(task);
    const messageId = stringOf(message);
    return {
      values: isObject(values) ? values : {},
      unfinished: listOf(next).length > 0,
      interrupts: listOf(tasks).flatMap(entry => (isObject(entry) ? readInterrupts(entry.interrupts) : [])),
      ...(taskId !== undefined && { taskId }),
      ...(messageId !== undefined && { messageId }),
    };
  }

  async *stream(run: GraphRun): AsyncGenerator<GraphEvent[]> {
    const { thread, signal, trace } = run;
    const path = `/threads/${threadIdOf(thread)}`;
    await this.#client.json('/threads', { signal, body: { thread_id: threadIdOf(thread), if_exists: 'do_nothing' } });
    const headers = { ...trace };
    const { location, events } = await this.#client.stream(`${path}/runs/stream`, { signal, headers, body: this.#body(run) });
    const id = location?.split('/').at(-1);
    const begun = id === undefined ? undefined : { thread: threadIdOf(thread), id };
    if (begun !== undefined) run.began?.(begun);
    const json = new JsonStream();
    let ended = false;
    try {
      for await (const frames of events) {
        const read: GraphEvent[] = [];
        try {
          for (const { event = '', data } of frames) {
            if (event === 'error') throw failureIn(data);
            const graphEvent = readServerEvent(event, data, json);
            if (graphEvent !== undefined) read.push(graphEvent);
          }
        } finally {
          // Events that arrived before an error are yielded before it.
          if (read.length > 0) yield read;
        }
      }
      ended = true;
    } finally {
      // `on_disconnect` also stops the run, but a proxy may keep its connection open.
      if (begun !== undefined && ended) this.#cancels.ended(keyOf(begun));
      else if (begun !== undefined) await this.#cancels.begin(keyOf(begun), this.#cancelRequest(begun, trace));
    }
  }

  async cancelRun(run: unknown, trace: GraphRun['trace']): Promise<void> {
    if (isServerRun(run)) await this.#cancels.cancel(keyOf(run), this.#cancelRequest(run, trace));
  }

  humanMessage(text: string, id: string): unknown {
    return { type: 'human', content: text, id };
  }

  async describe(signal: AbortSignal) {
    const { name, description } = await this.#assistantOf(signal);
    const displayName = stringOf(name) ?? this.#assistant;
    return {
      id: this.#assistant,
      name: displayName,
      description: stringOf(description) ?? `Graph ${displayName} of a LangGraph server`,
    };
  }

  async close(): Promise<void> {
    this.#cancels.close();
  }

  async #assistantOf(signal: AbortSignal): Promise<JsonObject> {
    const found = UUID.test(this.#assistant)
      ? await this.#client.json(`/assistants/${this.#assistant}`, { signal, method: 'GET' })
      : listOf(await this.#client.json('/assistants/search', { signal, body: { graph_id: this.#assistant, limit: 1 } }))[0];
    if (!isObject(found)) throw new GraphFault('the LangGraph server does not have this assistant');
    return found;
  }

  #body({ input, taskId, messageId }: GraphRun): JsonObject {
    return {
      assistant_id: this.#assistant,
      ...inputOf(input),
      stream_mode: SERVER_MODES,
      stream_subgraphs: true,
      on_disconnect: 'cancel',
      // A second task of the same context waits for the first.
      multitask_strategy: 'enqueue',
      config: { configurable: { a2a_task_id: taskId, a2a_message_id: messageId } },
    };
  }

  /**
   * Any answer is final, because it means that the run has ended or is unknown. The exceptions are answers of a server that restarts or is
   * busy.
   */
  #cancelRequest({ thread, id }: ServerRun, trace: GraphRun['trace']): CancelRequest {
    const path = `/threads/${encodeURIComponent(thread)}/runs/${encodeURIComponent(id)}/cancel`;
    return async signal => {
      const status = await this.#client.status(path, { signal, headers: { ...trace }, body: {} });
      if (status >= 500 || BUSY.includes(status))
        throw new GraphFault(`the LangGraph server answered with status ${status}`, true);
    };
  }
}

/** State that another attempt needs to cancel a run. */
type ServerRun = { thread: string; id: string };

function isServerRun(run: unknown): run is ServerRun {
  return isObject(run) && typeof run.thread === 'string' && typeof run.id === 'string';
}

const keyOf = ({ thread, id }: ServerRun) => `${thread}/${id}`;

function inputOf(input: RunInput): JsonObject {
  if (input.kind === 'state') return { input: input.update };
  if (input.kind === 'continue') return { input: null };
  const { answer: resume, update } = input;
  return { command: { resume, ...(Object.keys(update).length > 0 && { update }) } };
}

/** Thread ids of a server are UUIDs; a context id is any text chosen by a client. */
function threadIdOf(context: string): string {
  return UUID.test(context) ? context.toLowerCase() : uuidOf(context);
}

/** Reads mode and path from `messages|inner:uuid`. Other events (`metadata`, heartbeats, future ones) are not graph events. */
function readServerEvent(event: string, data: string, json: JsonStream): GraphEvent | undefined {
  const [name = '', ...path] = event.split('|');
  const mode = MODES.find(known => known === name);
  if (mode === undefined) return undefined;
  return { mode, path, chunk: parse(data, json) };
}

function failureIn(data: string): GraphFault {
  const error = parse(data);
  return failureOf(isObject(error) ? error.error : undefined);
}

function parse(data: string, json?: JsonStream): unknown {
  try {
    return json === undefined ? JSON.parse(data) : json.read(data);
  } catch (cause) {
    throw new GraphFault('an event of the LangGraph server is not JSON', false, { cause });
  }
}
