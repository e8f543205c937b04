import type { Dialect, DialectName, JsonObject } from '@hopline/a2a';
import type { AgentExtension } from '@hopline/agent-card';
import type { Owner, ProfileName, Role } from '@hopline/events';
import type { Log } from '@hopline/log';
import type { Binding, Hop, HopMetrics, Logger } from '@hopline/telemetry';
import type { Authenticate, RequestHeaders } from './authenticate.ts';
import type { TaskFeeds } from './feed/task-feeds.ts';
import type { Limits } from './limits.ts';
import type { Quotas } from './quotas/quotas.ts';
import type { EventSink } from './stream/event-sink.ts';
import type { OpenStreams } from './stream/open-streams.ts';
import type { TaskLists } from './task-lists.ts';

/** State and settings that all operations of one A2A server share, for every binding. */
export type A2AServer = {
  log: Log;
  role: Role;
  profile: ProfileName;
  limits: Limits;
  logger: Logger;
  metrics: HopMetrics | undefined;
  authenticate: Authenticate;
  /**
   * Runs before each operation. It may wait, reject the request with an A2AError, or replace its stream. Absent: operations run directly.
   */
  intercept: ((request: ServerRequest) => Promise<ServerRequest>) | undefined;
  /** Maps the task ids that clients chose in recorded tasks to ids in the log. Absent: the server has no recorded tasks. */
  recordedTaskIds: ReadonlyMap<string, string> | undefined;
  /** Whether streaming is available. Must equal the card's capability. */
  streaming: boolean;
  /** The extensions that the card declares. */
  extensions: readonly AgentExtension[];
  /** Whether push notifications are available. Must equal the card's capability. */
  push: boolean;
  /** Whether this server writes new tasks to the shared index at once, before the relay does. */
  writesIndex: boolean;
  /** The problem of a webhook URL, as the end of a sentence that does not quote the URL; undefined when the URL is allowed. */
  webhookProblem(url: string): string | undefined;
  /** Output media types of the card. Empty: unknown, and any request is accepted. */
  outputModes(): readonly string[];
  /** The extended card for an authenticated caller, in the form of an A2A version; undefined when there is none. */
  extendedCard: ((caller: Owner, version: DialectName) => JsonObject | Promise<JsonObject>) | undefined;
  feeds: TaskFeeds;
  streams: OpenStreams;
  quotas: Quotas;
  lists: TaskLists;
  /**
   * Ends every stream with an error that asks the client to reconnect, and every wait with the task as it is. Call it before
   * the process stops.
   */
  drain(): void;
  /** Closes the subscriptions to the log. */
  close(): void;
};

/** A request, decoded by its binding. */
export type ServerRequest = {
  binding: Binding;
  dialect: Dialect;
  /**
   * True for a method that 0.3 and the legacy form share, in a request that names no version. The task then determines the dialect
   * (`dialectFor`).
   */
  ambiguous?: boolean;
  params: unknown;
  /** Size of the request's body. */
  bytes: number;
  /** Lower-case names: cursor, trace context, credentials. */
  headers: RequestHeaders;
  /** A cursor sent outside of the headers. A `last-event-id` header takes precedence. */
  cursor?: string | undefined;
  /**
   * The client connects again after the end of a stream. If it has every event of a task that has ended, it gets the answer `null` instead of an empty
   * stream. Absent: it gets the stream.
   */
  reconnects?: boolean;
  /** Aborts when the response ends or its client disconnects. Created when first read, because few streams need it. */
  readonly closed: AbortSignal;
  /** The client disconnected before the response ended. */
  isClientGone(): boolean;
  /** Names the active extensions in the response. Called before `openSink`, and only when there are any. */
  nameExtensions?(uris: readonly string[]): void;
  /** Names the trace of the request in the response. Called first, and only with a `traceparent`. */
  nameTrace?(traceparent: string): void;
  /** The bytes of the response, for an operation whose answer is not a stream. */
  encode(answer: OperationAnswer): Buffer;
  /** Turns the response into a stream of events. `extensions`: URIs of the active extensions. */
  openSink(dialect: Dialect, extensions: readonly string[]): EventSink;
};

/** Context of one operation: the request, its caller and its telemetry. */
export type OperationContext = Pick<ServerRequest, 'dialect' | 'ambiguous' | 'params' | 'cursor' | 'reconnects' | 'openSink'> & {
  /** URIs of the active extensions. */
  extensions: readonly string[];
  /** The owner whose tasks the operation can see; all others are hidden. */
  caller: Owner;
  hop: Hop;
  /** The task of the request, once known, for the log line of a failure. */
  taskId?: string;
  /** Epoch milliseconds. */
  receivedAt: number;
  /** Aborts when the client disconnects before its response, or the process drains. Never cancels a task. Created when first read. */
  readonly signal: AbortSignal;
};

export type OperationAnswer = JsonObject | JsonObject[] | null;
/** The answer, or `streamed` when the response became a stream of events. */
export type OperationResult = OperationAnswer | 'streamed';
export type OperationHandler = (server: A2AServer, context: OperationContext) => Promise<OperationResult>;
