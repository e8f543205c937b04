import type { JsonObject, Message, Metadata, SendRequest, Task, TaskState } from '@hopline/a2a';
import { Calls, type TaskPage } from './calls.ts';
import type { Card, CardOptions } from './card.ts';
import { CLIENT_LIMITS, type ClientLimits } from './limits.ts';
import type { CallOptions } from './notice.ts';
import { messageOf, type OutgoingMessage } from './outgoing.ts';
import type { StreamItem } from './place.ts';
import { type Begin, resumingStream } from './resuming-stream.ts';
import { Transport } from './transport.ts';
import { RETRY_LIMITS, type RetryLimits } from './tries.ts';

export type ClientOptions = {
  /** Where the server takes JSON-RPC. */
  url: string;
  /** What is spoken on the wire, 1.0 by default; what comes out here has the form of 1.0 either way. */
  dialect?: '1.0' | '0.3';
  /** Sent with every request, e.g. `authorization`. */
  headers?: Readonly<Record<string, string>>;
  /** Instead of the global one. */
  fetch?: typeof fetch;
  /** Instead of RETRY_LIMITS. */
  retry?: Partial<RetryLimits>;
  /** Instead of CLIENT_LIMITS. */
  limits?: Partial<ClientLimits>;
};

export type StreamOptions = CallOptions & {
  /** Of the request, beside the message's own. */
  metadata?: Metadata;
  acceptedOutputModes?: string[];
  /** Newest messages of the history in the answer. */
  historyLength?: number;
};

export type SendOptions = StreamOptions & {
  /** false: answers at once, and the task goes on. */
  blocking?: boolean;
};

export type GetOptions = CallOptions & { historyLength?: number };

export type ListOptions = GetOptions & {
  contextId?: string;
  state?: TaskState;
  /** 1 to 100. */
  pageSize?: number;
  /** What the page before gave as `nextPageToken`. */
  pageToken?: string;
  /** Only tasks whose status is of this time or later. */
  statusSince?: Date;
  includeArtifacts?: boolean;
};

export type SubscribeOptions = CallOptions & {
  /** Of the last event that was seen, or BEGINNING. Without one the task as it is comes first, and 1.0 refuses a task that has ended. */
  cursor?: string;
};

/** Everything here throws A2AError, or the reason of an aborted signal, after it was tried as often as RetryLimits allow. */
export type Client = {
  /** Says a message and waits until its turn is over. */
  send(message: OutgoingMessage, options?: SendOptions): Promise<{ task: Task } | { message: Message }>;
  /** Says a message, with the first `next()`, and shows what follows until the task ends or asks. */
  stream(message: OutgoingMessage, options?: StreamOptions): AsyncGenerator<StreamItem, void, undefined>;
  get(taskId: string, options?: GetOptions): Promise<Task>;
  /** One page of the caller's tasks, newest status first. Throws UNSUPPORTED_OPERATION in dialect 0.3, which has no lists. */
  list(options?: ListOptions): Promise<TaskPage>;
  /** The task as it is then: canceled, unless its agent takes more than the server's patience. */
  cancel(taskId: string, options?: CallOptions): Promise<Task>;
  /** What follows in a task until it ends. */
  subscribe(taskId: string, options?: SubscribeOptions): AsyncGenerator<StreamItem, void, undefined>;
  /** With `keyOf` the card must be signed, and only what is signed comes out. */
  card(options?: CardOptions): Promise<Card>;
};

/** Throws TypeError for a URL or headers that cannot be used. Opens nothing, so there is nothing to close. */
export function createClient(options: ClientOptions): Client {
  // Browsers refuse a fetch that was taken off its window.
  const { url, dialect = '1.0', headers = {}, fetch = (input, init) => globalThis.fetch(input, init) } = options;
  const transport = new Transport({ url, dialect, headers, fetch });
  const retry = { ...RETRY_LIMITS, ...options.retry };
  const limits = { ...CLIENT_LIMITS, ...options.limits };
  const calls = new Calls(transport, limits, retry);

  function follow(begin: Begin, call: CallOptions) {
    const get = (id: string) => calls.getOnce({ id, historyLength: 0 }, call);
    return resumingStream({ transport, begin, retry, silenceMsMax: limits.silenceMsMax, call, get });
  }

  function sendParams(
    message: OutgoingMessage,
    { metadata, acceptedOutputModes, historyLength, blocking = true }: SendOptions,
  ): JsonObject {
    const request: SendRequest = {
      message: messageOf(message),
      blocking,
      ...(metadata && { metadata }),
      ...(acceptedOutputModes && { acceptedOutputModes }),
      ...(historyLength !== undefined && { historyLength }),
    };
    return transport.dialect.encodeSend(request);
  }

  return {
    send: async (message, call = {}) => calls.send(sendParams(message, call), call),
    stream: (message, call = {}) => follow({ operation: 'stream', params: sendParams(message, call) }, call),
    get: (id, call = {}) =>
      calls.get({ id, ...(call.historyLength !== undefined && { historyLength: call.historyLength }) }, call),
    list: (call = {}) => calls.list(listParams(call), call),
    cancel: (taskId, call = {}) => calls.cancel(taskId, call),
    subscribe: (taskId, call = {}) => follow({ operation: 'subscribe', taskId, cursor: call.cursor }, call),
    card: (call = {}) => calls.card(call),
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
}: ListOptions): JsonObject {
  return {
    ...(contextId !== undefined && { contextId }),
    ...(state !== undefined && { status: state }),
    ...(pageSize !== undefined && { pageSize }),
    ...(pageToken !== undefined && { pageToken }),
    ...(historyLength !== undefined && { historyLength }),
    ...(statusSince !== undefined && { statusTimestampAfter: statusSince.toISOString() }),
    ...(includeArtifacts !== undefined && { includeArtifacts }),
  };
}
