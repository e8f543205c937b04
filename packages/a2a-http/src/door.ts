import type { A2AError, Dialect, DialectName, JsonObject } from '@hopline/a2a';
import type { Profile, Role } from '@hopline/events';
import type { Log } from '@hopline/log';
import type { Hop, HopMetrics, Logger } from '@hopline/telemetry';
import type { FastifyReply } from 'fastify';
import type { TaskFeeds } from './feed/task-feeds.ts';
import type { Limits } from './limits.ts';
import type { OpenStreams } from './stream/open-streams.ts';
import type { TaskIndex } from './task-index.ts';

/** What every operation of one door works with. */
export type Door = {
  log: Log;
  role: Role;
  profile: Profile;
  limits: Limits;
  logger: Logger;
  metrics: HopMetrics | undefined;
  feeds: TaskFeeds;
  streams: OpenStreams;
  index: TaskIndex;
};

/** What a binding puts around the results of a dialect. */
export type Framing = {
  /** JSON text before and after a result, in each frame of a stream. */
  before: string;
  after: string;
  /** A frame that says what went wrong. */
  failure(error: A2AError, dialect: DialectName): object;
  /** SSE event name of that frame; absent: none. */
  failureEvent?: string;
};

/** One request that was understood: who asks, in which dialect, for what. */
export type Ask = {
  dialect: Dialect;
  /** No version was named, and the method is one that 0.3 and the legacy form both have: the task decides (`dialectFor`). */
  ambiguous?: boolean;
  framing: Framing;
  params: unknown;
  /** `Last-Event-ID` header or `cursor` query. */
  cursor: string | undefined;
  hop: Hop;
  reply: FastifyReply;
  /** Epoch milliseconds. */
  receivedAt: number;
  /** Aborts when the client has gone before it was answered, or the process drains. Never cancels a task (S2-35). */
  leaving: AbortSignal;
};

/** The result to answer with, or `streamed` when the response was taken over. */
export type Answer = JsonObject | 'streamed';
export type Operate = (door: Door, ask: Ask) => Promise<Answer>;
