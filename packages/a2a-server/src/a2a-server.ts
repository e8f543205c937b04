import type { Dialect, DialectName, JsonObject } from '@hopline/a2a';
import type { AgentExtension } from '@hopline/agent-card';
import type { Owner, ProfileName, Role } from '@hopline/events';
import type { Log } from '@hopline/log';
import type { Hop, HopMetrics, Logger } from '@hopline/telemetry';
import type { Authenticate, RequestHeaders } from './authenticate.ts';
import type { TaskFeeds } from './feed/task-feeds.ts';
import type { Limits } from './limits.ts';
import type { EventSink } from './stream/event-sink.ts';
import type { OpenStreams } from './stream/open-streams.ts';
import type { TaskIndex } from './task-index.ts';

/** What every operation of one door works with, whatever the bindings in front of it. */
export type A2AServer = {
  log: Log;
  role: Role;
  profile: ProfileName;
  limits: Limits;
  logger: Logger;
  metrics: HopMetrics | undefined;
  authenticate: Authenticate;
  /** Whether streams are offered; the card must say the same (S4-2). */
  streaming: boolean;
  /** Those of the card. */
  extensions: readonly AgentExtension[];
  /** Whether webhooks can be set; the card must say the same (S4-23). */
  push: boolean;
  /** What is wrong with a webhook's URL, as the end of a sentence that never quotes it; undefined when it may be stored. */
  webhookProblem(url: string): string | undefined;
  /** Media types that the card offers as output; none: nobody knows. */
  outputModes(): readonly string[];
  /** The card for a caller who is known, as readers of a version take it; absent: there is none. */
  extendedCard: ((caller: Owner, version: DialectName) => JsonObject | Promise<JsonObject>) | undefined;
  feeds: TaskFeeds;
  streams: OpenStreams;
  index: TaskIndex;
  /** Tells every stream to come back and ends it; waits end with the task as it is. For a process that is about to end. */
  drain(): void;
  /** Lets go of the log. */
  close(): void;
};

/** A request as its binding understood it. */
export type ServerRequest = {
  dialect: Dialect;
  /** No version was named, and the method is one that 0.3 and the legacy form both have: the task decides (`dialectFor`). */
  ambiguous?: boolean;
  params: unknown;
  /** Names in lower case: cursor, trace context, credentials. */
  headers: RequestHeaders;
  /** A cursor that came otherwise than as `last-event-id`, which counts more. */
  cursor?: string | undefined;
  /** Aborts when the response is over, or its client has gone. */
  gone: AbortSignal;
  /** The response names these extensions: they are active for the request. Called before `openSink`, and only when there are any. */
  nameExtensions?(uris: readonly string[]): void;
  /** Takes the response over for a stream of events. `extensions`: the URIs of those that are active. */
  openSink(dialect: Dialect, extensions: readonly string[]): EventSink;
};

/** A request on its way through an operation: who asks, for what. */
export type OperationContext = Pick<ServerRequest, 'dialect' | 'ambiguous' | 'params' | 'cursor' | 'openSink'> & {
  /** URIs of those that are active. */
  extensions: readonly string[];
  /** Sees its own tasks alone. */
  caller: Owner;
  hop: Hop;
  /** Epoch milliseconds. */
  receivedAt: number;
  /** Aborts when the client has gone before it was answered, or the process drains. Never cancels a task (S2-35). */
  leaving: AbortSignal;
};

/** The result to answer with, or `streamed` when the response was taken over. */
export type OperationResult = JsonObject | JsonObject[] | null | 'streamed';
export type Operate = (door: A2AServer, ask: OperationContext) => Promise<OperationResult>;
