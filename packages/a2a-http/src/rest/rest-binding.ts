import { A2A_JSON_TYPE, A2AError, DIALECTS, httpJsonFailure, operationOf } from '@hopline/a2a';
import { type A2AServer, report, runOperation } from '@hopline/a2a-server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { varyBy } from '../cors.ts';
import { setErrorHeaders } from '../error-headers.ts';
import { operationRequest } from '../operation-request.ts';
import { headerOf, namedVersion, readsEventsAlone } from '../read-request.ts';
import type { Framing } from '../sse-sink.ts';
import { bareJson, encodeJson, openRoutes, paramsOf } from './rest-request.ts';
import { type HttpMethod, REST_ROUTES, routeOf, routerPaths } from './routes.ts';

/** This binding has the same base addresses as the JSON-RPC binding. A tenant comes first in the path. */
const PREFIXES = ['', '/:tenant', '/a2a', '/a2a/:tenant'];

const JSON_TYPE = 'application/json';

/**
 * Frames are bare ([A2A 1.0] 11.7). An error is an event with this name, which the SDK's client throws; it would treat an event without a
 * name as empty.
 */
const FRAMING: Framing = { before: '', after: '', failure: error => httpJsonFailure(error), failureEvent: 'error' };

const dialect = DIALECTS['1.0'];

/** Registers the HTTP+JSON binding of A2A 1.0 on a scope that reads bodies as bytes. */
export function registerRest(scope: FastifyInstance, server: A2AServer): void {
  openRoutes(scope, server, PREFIXES, routerPaths(REST_ROUTES), (path, request, reply) =>
    answerRest(server, path, request.params as Record<string, string>, request, reply),
  );
}

/** Answers one request with JSON or an event stream. Never throws. `path`: the pattern of the router, without its prefix. */
export async function answerRest(
  server: A2AServer,
  path: string,
  pathParams: Record<string, string>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  try {
    requireVersion(request);
    const routed = routeOf(REST_ROUTES, path, pathParams);
    if (routed === undefined) throw new A2AError('METHOD_NOT_FOUND', { detail: 'unknown path or task verb' });
    const method = routed.route[request.method as HttpMethod];
    if (method === undefined) return refuseMethod(server, request, reply, Object.keys(routed.route));
    const operation = operationOf(dialect, method, [dialect]);
    const params = paramsOf(request, routed.params);
    const answer = await runOperation(
      server,
      operation,
      operationRequest(server, request, reply, { binding: 'http', dialect, params, encode: encodeJson, framing: FRAMING }),
    );
    return answer === 'streamed' ? undefined : sendJson(request, reply, answer);
  } catch (thrown) {
    const error = A2AError.from(thrown);
    report(server, error, { binding: 'http', headers: request.headers });
    return reply.sent ? undefined : sendRestError(request, reply, error);
  }
}

/** These paths exist only in 1.0, and a request without a version is a 0.3 request ([A2A 1.0] 3.6.2). */
function requireVersion(request: FastifyRequest): void {
  if (namedVersion(request) === dialect.name) return;
  throw new A2AError('VERSION_NOT_SUPPORTED', { detail: 'this path requires A2A-Version: 1.0; paths of 0.3 start with /v1' });
}

function refuseMethod(server: A2AServer, request: FastifyRequest, reply: FastifyReply, allowed: string[]): FastifyReply {
  const error = new A2AError('METHOD_NOT_FOUND', { detail: `this path supports ${allowed.join(' and ')}` });
  report(server, error, { binding: 'http', headers: request.headers });
  return sendRestError(request, reply.header('allow', allowed.join(', ')), error, 405);
}

/** The Go SDK reads the error of a stream only as `application/json`, although it accepts only event streams. */
function sendJson(request: FastifyRequest, reply: FastifyReply, json: Buffer): FastifyReply {
  const accepts = headerOf(request, 'accept') ?? '';
  const plain = readsEventsAlone(request) || (accepts.includes(JSON_TYPE) && !accepts.includes(A2A_JSON_TYPE));
  varyBy(reply, 'accept');
  return bareJson(reply, plain ? JSON_TYPE : A2A_JSON_TYPE, json);
}

export function sendRestError(
  request: FastifyRequest,
  reply: FastifyReply,
  error: A2AError,
  status = error.row.http,
): FastifyReply {
  setErrorHeaders(reply, error);
  return sendJson(request, reply.code(status), encodeJson(httpJsonFailure(error, status)));
}
