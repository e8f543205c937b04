import {
  A2AError,
  isTerminal,
  type JsonObject,
  type Message,
  type Metadata,
  type NewPushConfig,
  present,
  type SendRequest,
  type Task,
  type TaskState,
} from '@hopline/a2a/client';
import type { ClientView } from '@hopline/task-view';
import type { ListedAgent } from './agents.ts';
import { Calls, type ExportOptions, type TaskPage } from './calls.ts';
import { leavable } from './leavable.ts';
import { CLIENT_LIMITS, type ClientLimits, type Overrides } from './limits.ts';
import type { CallOptions } from './notice.ts';
import { messageOf, newTraceparent, type OutgoingMessage } from './outgoing.ts';
import { type Begin, resumingStream } from './resuming-stream.ts';
import { BEGINNING, type StreamItem } from './stream-position.ts';
import { type HeadersFunction, type RequestHeaders, Transport } from './transport.ts';
import { RETRY_LIMITS, type RetryLimits } from './tries.ts';
import { answerOf, tasksWithoutStream, viewsOf } from './watch.ts';

/** Address of the server, and how to reach it. */
export type ClientOptions = {
  /** JSON-RPC endpoint of the server. */
  url: string;
  /** Dialect on the wire, 1.0 by default. Results have the form of 1.0 in both. */
  dialect?: '1.0' | '0.3' | undefined;
  /**
   * Sent with every request, e.g. `authorization`. A function is called before each request, so that a token can be renewed, and once more with the
   * error when the server has refused the headers: if it then returns other ones, the request is sent again.
   */
  headers?: RequestHeaders | HeadersFunction | undefined;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** Overrides RETRY_LIMITS. */
  retry?: Overrides<RetryLimits> | undefined;
  /** Overrides CLIENT_LIMITS. */
  limits?: Overrides<ClientLimits> | undefined;
  /**
   * Starts a trace with each call that has no `traceparent`, so that all its requests, including resumes, are one trace on the servers.
   * Default: false, because such a trace is always sampled, whatever the server's own rate is.
   */
  startsTraces?: boolean | undefined;
};

/** Options of a call that sends a message. */
export type StreamOptions = CallOptions & {
  /** Name of the agent that receives the message. Default: the server chooses. Servers other than Hopline ignore it. */
  agent?: string | undefined;
  /** Metadata of the request, in addition to the message's own. */
  metadata?: Metadata | undefined;
  acceptedOutputModes?: string[] | undefined;
  /** Number of newest messages of the history in the response. */
  historyLength?: number | undefined;
  /**
   * Experimental (A2A's draft 1.1): the message continues its task only if the task is at this generation, otherwise
   * TASK_GENERATION_MISMATCH.
   */
  ifGenerationMatch?: number | undefined;
  /**
   * A webhook that receives the events of the task, on servers whose card has the capability `pushNotifications`. Others reject the message
   * with PUSH_NOTIFICATION_NOT_SUPPORTED.
   */
  push?: NewPushConfig | undefined;
};

/** Options of `send`. */
export type SendOptions = StreamOptions & {
  /** false: resolves at once; the task continues. */
  blocking?: boolean | undefined;
};

/** Options of `get`. `historyLength`: number of newest messages in the response; all by default. */
export type GetOptions = CallOptions & {
  historyLength?: number | undefined;
  /**
   * Experimental (A2A's draft 1.1): the server responds once the task has an event after this generation, or after a time of its own
   * (Hopline: 20 s) with the task as it is.
   */
  currentGeneration?: number | undefined;
};

/** Filters and paging of `list`. */
export type ListOptions = Omit<GetOptions, 'currentGeneration'> & {
  contextId?: string | undefined;
  state?: TaskState | undefined;
  /** 1 to 100. */
  pageSize?: number | undefined;
  /** `nextPageToken` of the previous page. */
  pageToken?: string | undefined;
  /** Only tasks whose status has this time or a later one. */
  statusSince?: Date | undefined;
  includeArtifacts?: boolean | undefined;
  /** Only tasks with this text in a question, in the beginning of the answer or in the reason of a failure. Servers other than Hopline ignore it. */
  text?: string | undefined;
  /** Only tasks in which this agent worked, or that a message names. Servers other than Hopline ignore it. */
  agent?: string | undefined;
  /** Only tasks that took at least this long, or have been in progress for that long. Servers other than Hopline ignore it. */
  minDurationMs?: number | undefined;
};

/** Options of `subscribe`. */
export type SubscribeOptions = CallOptions & {
  /**
   * Cursor of the last received event, or BEGINNING. Without a cursor the stream starts with the current task, and 1.0 rejects an
   * ended task.
   */
  cursor?: string | undefined;
};

/** Options of `ask`. */
export type AskOptions = StreamOptions & {
  /** Receives the view after each event, to show the answer while it arrives. */
  onView?: ((view: ClientView) => void) | undefined;
};

/** The current task, and the cursor after it. A server may render it and pass it to the page as JSON. */
export type TaskSnapshot = {
  event: { task: Task };
  /** Undefined for a task that has ended, and for a server without cursors. */
  cursor: string | undefined;
};

/** Every call throws an A2AError, after the retries that RetryLimits allow, or the reason of an aborted signal. */
export type TaskClient = {
  /** Sends a message and waits for the end of its turn. */
  send(message: OutgoingMessage, options?: SendOptions): Promise<{ task: Task } | { message: Message }>;
  /** Sends a message with the first `next()` and yields events until the task ends or waits for input. */
  stream(message: OutgoingMessage, options?: StreamOptions): AsyncGenerator<StreamItem, void, undefined>;
  /** Resolves with the current task. Throws TASK_NOT_FOUND for an unknown task and for a task of another caller. */
  get(taskId: string, options?: GetOptions): Promise<Task>;
  /** Resolves with the current task and its cursor, for a page that a server renders (`initial` of `taskStore`). */
  snapshot(taskId: string, options?: CallOptions): Promise<TaskSnapshot>;
  /** One page of the caller's tasks, newest status first. Throws UNSUPPORTED_OPERATION in dialect 0.3, which has no lists. */
  list(options?: ListOptions): Promise<TaskPage>;
  /** Resolves with the task, which is canceled unless its agent takes longer to stop than the server waits. */
  cancel(taskId: string, options?: CallOptions): Promise<Task>;
  /** Yields the events of a task until it ends. */
  subscribe(taskId: string, options?: SubscribeOptions): AsyncGenerator<StreamItem, void, undefined>;
  /**
   * Yields the task as a page shows it, after each event that changes it, until the task ends: answer, plan, tools, files, question. Starts at
   * the beginning of the task, with its turns; with the task as it is, where the beginning has expired or the server has no cursors.
   */
  watch(task: string | Pick<Task, 'id'>, options?: CallOptions): AsyncGenerator<ClientView, void, undefined>;
  /**
   * Sends a message and resolves with the text of the answer. Rejects with NoAnswerError when the task ends otherwise or asks a question;
   * answer it with `ask({ taskId: error.view.taskId, parts })`.
   */
  ask(message: OutgoingMessage, options?: AskOptions): Promise<string>;
  /** Resolves with the agents of a Hopline server. Throws UNSUPPORTED_OPERATION for a server without such a list. */
  agents(options?: CallOptions): Promise<ListedAgent[]>;
  /**
   * Audits a task of the caller: where it spent its time, and what became of each of its inputs. Only on Hopline servers. Numbers and
   * names, never text.
   */
  audit(taskId: string, options?: CallOptions): Promise<JsonObject>;
  /** Explains where one event of a task of the caller comes from. Only on Hopline servers. Numbers and names, never text. */
  explain(taskId: string, cursor: string, options?: CallOptions): Promise<JsonObject>;
  /**
   * Yields the bytes of a task file (`*.hopline.jsonl`). Only on Hopline servers. Retries until the first byte; a connection that breaks
   * later throws UNAVAILABLE, and a call with `after` continues.
   */
  export(taskId: string, options?: ExportOptions): AsyncGenerator<Uint8Array, void, undefined>;
};

/**
 * Throws TypeError for an invalid URL or header. A client holds no connections, so it need not be closed.
 * @public
 */
export function createTaskClient(options: ClientOptions): TaskClient {
  return openTaskClient(options).client;
}

/** A client, and the calls with which createClient reads cards. */
export function openTaskClient(options: ClientOptions): { client: TaskClient; calls: Calls } {
  // Calls fetch as a member of globalThis, because browsers reject a call that is detached from the window.
  const { url, dialect = '1.0', headers = {}, fetch = (input, init) => globalThis.fetch(input, init) } = options;
  const transport = new Transport({ url, dialect, headers, fetch });
  const retry = { ...RETRY_LIMITS, ...present({ ...options.retry }) };
  const limits = { ...CLIENT_LIMITS, ...present({ ...options.limits }) };
  const calls = new Calls(transport, limits, retry);

  function follow(begin: Begin, call: CallOptions) {
    const get = (id: string) => calls.getOnce({ id, historyLength: 0 }, call);
    return resumingStream({ transport, begin, retry, silenceMsMax: limits.silenceMsMax, call, get });
  }

  /** Gives all requests of a call one trace. */
  function traced<T extends CallOptions>(call: T): T {
    if (call.traceparent !== undefined || options.startsTraces !== true) return call;
    return { ...call, traceparent: newTraceparent() };
  }

  function sendParams(
    message: OutgoingMessage,
    { agent, metadata, acceptedOutputModes, historyLength, ifGenerationMatch, push, blocking = true }: SendOptions,
  ): JsonObject {
    const named = agent === undefined ? metadata : { ...metadata, agent };
    const request: SendRequest = {
      message: messageOf(message),
      blocking,
      ...(named && { metadata: named }),
      ...(acceptedOutputModes && { acceptedOutputModes }),
      ...(historyLength !== undefined && { historyLength }),
      ...(ifGenerationMatch !== undefined && { ifGenerationMatch }),
      ...(push !== undefined && { push }),
    };
    return transport.dialect.encodeSend(request);
  }

  function watch(task: string | Pick<Task, 'id'>, call: CallOptions) {
    const id = typeof task === 'string' ? task : task.id;
    return leavable(call, own => {
      const items = follow({ operation: 'subscribe', taskId: id, cursor: BEGINNING }, own);
      return viewsOf(items, { get: () => calls.get({ id }, own) });
    });
  }

  async function snapshot(id: string, call: CallOptions): Promise<TaskSnapshot> {
    const items = follow({ operation: 'subscribe', taskId: id, cursor: undefined }, call);
    for await (const item of tasksWithoutStream(items, () => calls.get({ id }, call))) {
      if ('gap' in item || !('task' in item.event)) continue;
      const { event, cursor } = item;
      // No event follows the end of a task.
      return { event, cursor: isTerminal(event.task.status.state) ? undefined : cursor };
    }
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the stream of the task does not begin with the task' });
  }

  function ask(message: OutgoingMessage, { onView, ...options }: AskOptions) {
    const call = traced(options);
    const continues = typeof message !== 'string' && message.taskId !== undefined;
    return answerOf(viewsOf(follow({ operation: 'stream', params: sendParams(message, call) }, call), { continues }), onView);
  }

  const client: TaskClient = {
    send: async (message, call = {}) => calls.send(sendParams(message, call), traced(call)),
    stream: (message, call = {}) => {
      const params = sendParams(message, call);
      return leavable(traced(call), own => follow({ operation: 'stream', params }, own));
    },
    get: (id, call = {}) => calls.get(getParams(id, call), traced(call)),
    list: (call = {}) => calls.list(listParams(call), traced(call)),
    snapshot: (id, call = {}) => snapshot(id, traced(call)),
    cancel: (taskId, call = {}) => calls.cancel(taskId, traced(call)),
    subscribe: (taskId, call = {}) =>
      leavable(traced(call), own => follow({ operation: 'subscribe', taskId, cursor: own.cursor }, own)),
    watch: (task, call = {}) => watch(task, traced(call)),
    ask: async (message, options = {}) => ask(message, options),
    agents: (call = {}) => calls.agents(call),
    audit: (taskId, call = {}) => calls.audit(taskId, call),
    explain: (taskId, cursor, call = {}) => calls.explain(taskId, cursor, call),
    export: (taskId, call = {}) => leavable(call, own => calls.export(taskId, own)),
  };
  return { client, calls };
}

function getParams(id: string, { historyLength, currentGeneration }: GetOptions): JsonObject {
  return {
    id,
    ...(historyLength !== undefined && { historyLength }),
    ...(currentGeneration !== undefined && { currentGeneration }),
  };
}

function listParams({
  contextId,
  state,
  pageSize,
  pageToken,
  historyLength,
  statusSince,
  includeArtifacts,
  text,
  agent,
  minDurationMs,
}: ListOptions): JsonObject {
  return {
    ...(contextId !== undefined && { contextId }),
    ...(state !== undefined && { status: state }),
    ...(pageSize !== undefined && { pageSize }),
    ...(pageToken !== undefined && { pageToken }),
    ...(historyLength !== undefined && { historyLength }),
    ...(statusSince !== undefined && { statusTimestampAfter: statusSince.toISOString() }),
    ...(includeArtifacts !== undefined && { includeArtifacts }),
    ...(text !== undefined && { text }),
    ...(agent !== undefined && { agent }),
    ...(minDurationMs !== undefined && { minDurationMs }),
  };
}
