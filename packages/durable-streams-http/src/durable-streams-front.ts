import { A2AError, type A2AErrorCode, httpJsonFailure } from '@hopline/a2a';
import {
  BEGINNING,
  type Front,
  type FrontRequest,
  headerOf,
  readStream,
  type StreamReader,
  sendRestError,
  streamOf,
  tenantOf,
} from '@hopline/a2a-http/front';
import { type A2AServer, report } from '@hopline/a2a-server';
import { type Cursor, isSameOwner, type Owner } from '@hopline/events';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { eventFrames } from './event-frames.ts';
import { cursorOf, offsetOf, positionOf } from './offset.ts';
import { OPEN_API } from './open-api.ts';
import { PartReader, TailReader } from './part-reader.ts';
import { pollCursor } from './poll-cursor.ts';

const BINDING = 'durable-streams' as const;
const PREFIXES = ['', '/:tenant'];
const READS = ['GET', 'HEAD'];
const WRITES = ['POST', 'PUT', 'DELETE', 'PATCH'];

/** A long poll without new messages ends after this long. */
export const LONG_POLL_MS_MAX = 20_000;

const START: Cursor = { generation: 0, seq: 0 };

/**
 * How long a browser may keep a part that cannot change. Only without authentication, because a cache keys on the URL, so the next user of
 * the browser would also get the part.
 */
const UNCHANGING = 'private, max-age=60, stale-while-revalidate=300';
/** Makes a cache ask the server before each answer, with the credentials of its reader. */
const REVALIDATED = 'private, no-cache';

type StreamRequest = FrontRequest & { caller: Owner };

const registerDurableStreams = (scope: FastifyInstance, server: A2AServer): void => {
  const answer = async (http: FastifyRequest, reply: FastifyReply) => {
    try {
      const caller = await server.authenticate({ headers: http.headers, tenant: tenantOf(http) });
      const failure = (error: A2AError) => httpJsonFailure(error);
      const request: StreamRequest = { server, http, reply, caller, binding: BINDING, failure };
      // Browsers must neither guess a type nor hide the response from pages that CORS allows.
      reply.header('x-content-type-options', 'nosniff').header('cross-origin-resource-policy', 'cross-origin');
      return await (http.method === 'HEAD' ? sendTail(request) : read(request));
    } catch (thrown) {
      const error = A2AError.from(thrown);
      report(server, error, { binding: BINDING, headers: http.headers });
      return reply.sent ? undefined : sendRestError(http, reply, error, thrown instanceof Gone ? 410 : undefined);
    }
  };
  const refuse = async (http: FastifyRequest, reply: FastifyReply) => {
    const error = new A2AError('METHOD_NOT_FOUND', { detail: 'this stream is read-only; messages of A2A write to the task' });
    report(server, error, { binding: BINDING, headers: http.headers });
    return sendRestError(http, reply.header('allow', READS.join(', ')), error, 405);
  };
  for (const prefix of PREFIXES) {
    const url = `${prefix}/tasks/:taskId/stream`;
    scope.route({ method: READS, url, exposeHeadRoute: false, handler: answer });
    // Checked before the body is read: the method is wrong whatever the body is.
    scope.route({ method: WRITES, url, exposeHeadRoute: false, onRequest: refuse, handler: refuse });
  }
};

/**
 * The read side of the Durable Streams Protocol: `GET /tasks/{id}/stream` reads the events of a task at an offset, waits for more, or streams
 * them; HEAD names the tail. The messages are the stream responses of A2A 1.0.
 */
export const durableStreamsFront: Front = Object.assign(registerDurableStreams, { openApi: OPEN_API });

/** Messages after the offset have expired. */
class Gone extends A2AError {
  constructor(taskId: string) {
    const detail = 'the events after this offset have expired; get the task, and read from offset=now';
    super('INVALID_PARAMS' satisfies A2AErrorCode, { detail, taskId });
  }
}

async function read(request: StreamRequest): Promise<FastifyReply | undefined> {
  const { reply, http } = request;
  const live = queryOf(http, 'live');
  const offset = queryOf(http, 'offset');
  if (live !== undefined && live !== 'long-poll' && live !== 'sse') throw invalid('live must be long-poll or sse');
  if (live !== undefined && offset === undefined) throw invalid('a live read needs an offset');
  const position = positionOf(offset ?? '-1');
  if (position === undefined) throw invalid('offset must be -1, now, or the Stream-Next-Offset of an earlier response');
  if (position !== 'now') return readFrom(request, position === '-1' ? START : position, live);
  const { tail } = await readTail(request);
  if (live !== undefined && !tail.ended) return readFrom(request, tail, live);
  if (live === 'sse') return streamFrom(request, tail);
  setPosition(reply, { next: tail, isUpToDate: true, isClosed: tail.ended });
  reply.header('cache-control', 'no-store');
  return live === undefined ? sendMessages(request, []) : reply.code(204).send();
}

async function readFrom(request: StreamRequest, after: Cursor, live: string | undefined): Promise<FastifyReply | undefined> {
  if (live === 'sse') return streamFrom(request, after);
  const { http, reply } = request;
  const part = new PartReader(after, { waits: live === 'long-poll' });
  const isRead = await readAfter(request, after, part, live === undefined ? undefined : LONG_POLL_MS_MAX);
  // A poll that a draining server ends continues at another server.
  if (!isRead && live === undefined) throw new A2AError('UNAVAILABLE', { detail: 'this server is shutting down' });
  if (part.isGone) throw new Gone(taskIdOf(http));
  setPosition(reply, part);
  if (live !== undefined && !part.isClosed) setPollCursor(request);
  if (live !== undefined && part.messages.length === 0) return reply.header('cache-control', 'no-store').code(204).send();
  const etag = `"${taskIdOf(http)}:${after.generation}:${part.next.generation}${part.isClosed ? ':c' : ''}"`;
  const isChanging = part.isUpToDate && !part.isFinal;
  const isForAll = isSameOwner(request.caller, undefined);
  reply.header('etag', etag).header('cache-control', isForAll && !isChanging ? UNCHANGING : REVALIDATED);
  if (matches(headerOf(http, 'if-none-match'), etag)) return reply.code(304).send();
  return sendMessages(request, part.messages);
}

/** Only an error before the stream begins can be a status, so the first message is read before it begins. */
async function streamFrom(request: StreamRequest, after: Cursor): Promise<FastifyReply | undefined> {
  const first = new PartReader(after, { waits: false, bytesMax: 1 });
  await readAfter(request, after, first);
  if (first.isGone) throw new Gone(taskIdOf(request.http));
  const call = { operation: 'subscribe', params: { id: taskIdOf(request.http) }, cursor: cursorOf(after) } as const;
  return streamOf(request, call, eventFrames(after, queryOf(request.http, 'cursor')));
}

/** HEAD: where the stream ends, and whether it has ended. */
async function sendTail(request: StreamRequest): Promise<FastifyReply> {
  const { tail } = await readTail(request);
  setPosition(request.reply, { next: tail, isUpToDate: false, isClosed: tail.ended });
  return request.reply.header('content-type', 'application/json').header('cache-control', 'no-store').send();
}

async function readTail(request: StreamRequest): Promise<TailReader> {
  const reader = new TailReader();
  await readAfter(request, START, reader);
  return reader;
}

/** Resolves with false if the server began to shut down first. */
async function readAfter(request: StreamRequest, after: Cursor, reader: StreamReader, waitMs?: number): Promise<boolean> {
  const { server, caller, http } = request;
  // A stream is slowed down to the budget of its caller. This answer is sent at once, so it needs room before it begins.
  server.quotas.requireSentRoom(caller);
  const cursor = after === START ? BEGINNING : cursorOf(after);
  return readStream(request, { operation: 'subscribe', params: { id: taskIdOf(http) }, cursor }, reader, waitMs);
}

type Position = { next: Cursor; isUpToDate: boolean; isClosed: boolean };

function setPosition(reply: FastifyReply, { next, isUpToDate, isClosed }: Position): void {
  reply.header('stream-next-offset', offsetOf(next));
  if (isUpToDate) reply.header('stream-up-to-date', 'true');
  if (isClosed) reply.header('stream-closed', 'true');
}

function setPollCursor({ http, reply }: StreamRequest): void {
  reply.header('stream-cursor', pollCursor(queryOf(http, 'cursor'), Date.now()));
}

/** JSON mode: an array of the messages. */
function sendMessages({ server, caller, reply }: StreamRequest, messages: readonly string[]): FastifyReply {
  const body = Buffer.from(`[${messages.join(',')}]`);
  server.quotas.countSent(caller, body.length);
  return reply.header('content-type', 'application/json').send(body);
}

function matches(named = '', etag: string): boolean {
  return named.split(',').some(one => one.trim().replace(/^W\//, '') === etag || one.trim() === '*');
}

function taskIdOf(http: FastifyRequest): string {
  return (http.params as { taskId: string }).taskId;
}

/** An empty value is refused, not ignored: the client has lost its offset. */
function queryOf(http: FastifyRequest, name: string): string | undefined {
  const value = (http.query as Record<string, unknown>)[name];
  if (value === undefined || typeof value === 'string') return value;
  throw invalid(`the query must not repeat ${name}`);
}

function invalid(detail: string): A2AError {
  return new A2AError('INVALID_PARAMS', { detail });
}
