import { A2A_JSON_TYPE, A2AError, DIALECTS, httpJsonFailure, operationOf } from '@hopline/a2a';
import type { A2AServer } from '@hopline/a2a-server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { varyBy } from '../cors.ts';
import { setErrorHeaders } from '../error-headers.ts';
import { acceptsOnlyEvents, headerOf, namedVersion } from '../request-values.ts';
import type { Framing } from '../sse-sink.ts';
import { answerRest, type RestForm } from './answer-rest.ts';
import { bareJson, encodeJson, openRoutes } from './rest-request.ts';
import { REST_ROUTES, routerPaths } from './routes.ts';

/** This binding has the same base addresses as the JSON-RPC binding. A tenant comes first in the path. */
const PREFIXES = ['', '/:tenant', '/a2a', '/a2a/:tenant'];

const JSON_TYPE = 'application/json';

/**
 * Frames are bare ([A2A 1.0] 11.7). An error is an event with this name, which the SDK's client throws; it would treat an event without a
 * name as empty.
 */
const FRAMING: Framing = { before: '', after: '', failure: error => httpJsonFailure(error), failureEvent: 'error' };

const dialect = DIALECTS['1.0'];

export const REST_FORM: RestForm<string> = {
  dialect,
  routes: REST_ROUTES,
  operationOf: method => operationOf(dialect, method, [dialect]),
  requireVersion,
  unknownPath: 'unknown path or task verb',
  framing: FRAMING,
  encode: (_operation, answer) => encodeJson(answer),
  sendJson,
  sendError: sendRestError,
};

/** Registers the HTTP+JSON binding of A2A 1.0 on a scope that reads bodies as bytes. */
export function registerRest(scope: FastifyInstance, server: A2AServer): void {
  openRoutes(scope, server, PREFIXES, routerPaths(REST_ROUTES), (path, request, reply) =>
    answerRest(REST_FORM, server, path, request.params as Record<string, string>, request, reply),
  );
}

/** These paths exist only in 1.0, and a request without a version is a 0.3 request ([A2A 1.0] 3.6.2). */
function requireVersion(request: FastifyRequest): void {
  if (namedVersion(request) === dialect.name) return;
  throw new A2AError('VERSION_NOT_SUPPORTED', { detail: 'this path requires A2A-Version: 1.0; paths of 0.3 start with /v1' });
}

/** The Go SDK reads the error of a stream only as `application/json`, although it accepts only event streams. */
function sendJson(request: FastifyRequest, reply: FastifyReply, json: Buffer): FastifyReply {
  const accepts = headerOf(request, 'accept') ?? '';
  const plain = acceptsOnlyEvents(request) || (accepts.includes(JSON_TYPE) && !accepts.includes(A2A_JSON_TYPE));
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
