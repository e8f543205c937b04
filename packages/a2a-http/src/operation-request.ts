import type { ServerResponse } from 'node:http';
import type { A2AServer, EventSink, ServerRequest } from '@hopline/a2a-server';
import { EXTENSIONS_HEADER, LEGACY_EXTENSIONS_HEADER } from '@hopline/agent-card';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { uncountedBytes } from './request-guard.ts';
import { queryOf } from './request-values.ts';
import { type Framing, SseSink } from './sse-sink.ts';

/** Shared by all requests, because `abort()` creates an error with a stack trace each time. */
const CLOSED = new DOMException('the connection was closed', 'AbortError');

export type UnderstoodRequest = Pick<ServerRequest, 'binding' | 'dialect' | 'ambiguous' | 'params' | 'reconnects' | 'encode'> & {
  framing: Framing;
  /** Takes precedence over the query. */
  cursor?: string;
  /** Wraps the stream, for another protocol. */
  wrapSink?: (sink: SseSink) => EventSink;
  /** Reads the events instead, for a response that is not a stream. */
  sink?: EventSink;
};

/** Converts an HTTP request into a request of the A2A server. */
export function operationRequest(
  { limits }: Pick<A2AServer, 'limits'>,
  request: FastifyRequest,
  reply: FastifyReply,
  understood: UnderstoodRequest,
): ServerRequest {
  const { framing, wrapSink, sink: given, ...parsed } = understood;
  const named = understood.dialect.name === '1.0' ? EXTENSIONS_HEADER : LEGACY_EXTENSIONS_HEADER;
  const response = reply.raw;
  let closed: AbortController | undefined;
  return {
    ...parsed,
    bytes: uncountedBytes(request),
    headers: request.headers,
    cursor: understood.cursor ?? queryOf(request, 'cursor'),
    get closed() {
      closed ??= closing(response);
      return closed.signal;
    },
    // The stream has already ended because its feed failed. The failure of its message arrives later, and closes it as well.
    isClientGone: () => response.destroyed && !response.writableEnded,
    // The form that monitoring tools for pages read, and that a person can quote.
    nameTrace: traceparent => void reply.header('server-timing', `traceparent;desc="${traceparent}"`),
    nameExtensions: uris => void reply.header(named, uris.join(', ')),
    openSink: (dialect, extensions) => {
      if (given !== undefined) return given;
      const sink = new SseSink(reply, dialect, { framing, extensions, stallMs: limits.viewerStallMsMax });
      return wrapSink?.(sink) ?? sink;
    },
  };
}

/** Aborts when the response ends or its client disconnects. */
function closing(response: ServerResponse): AbortController {
  const closed = new AbortController();
  if (response.destroyed) closed.abort(CLOSED);
  else response.on('close', () => closed.abort(CLOSED));
  return closed;
}
