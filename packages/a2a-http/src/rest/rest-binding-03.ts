import { A2AError, type JsonObject, type Operation, rpcFailure } from '@hopline/a2a';
import { dialect03Proto as dialect, errorType } from '@hopline/a2a/dialect-0.3-proto';
import type { A2AServer, OperationAnswer } from '@hopline/a2a-server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { setErrorHeaders } from '../error-headers.ts';
import { namedVersion } from '../request-values.ts';
import type { Framing } from '../sse-sink.ts';
import { answerRest, type RestForm } from './answer-rest.ts';
import { REST_FORM, sendRestError } from './rest-binding.ts';
import { bareJson, encodeJson, openRoutes } from './rest-request.ts';
import { REST_ROUTES_03, routerPaths } from './routes.ts';

const PREFIXES = ['', '/a2a'];

/** Prefix of the paths of 0.3. In a 1.0 request it is a tenant. */
const V1 = 'v1';

/** Frames are bare, and an error is an event with this name, as `@a2a-js/sdk` 0.3 expects. */
const FRAMING: Framing = { before: '', after: '', failure: failureOf, failureEvent: 'error' };

/** Registers the HTTP+JSON binding of A2A 0.3 on a scope that reads bodies as bytes. */
export function registerRest03(scope: FastifyInstance, server: A2AServer): void {
  openRoutes(scope, server, PREFIXES, routerPaths(REST_ROUTES_03), (path, request, reply) => {
    const params = request.params as Record<string, string>;
    const isTenant = namedVersion(request) === '1.0' && path.startsWith(`/${V1}/`);
    if (!isTenant) return answerRest(FORM, server, path, params, request, reply);
    return answerRest(REST_FORM, server, path.slice(`/${V1}`.length), { ...params, tenant: V1 }, request, reply);
  });
}

const FORM: RestForm<Operation> = {
  dialect,
  routes: REST_ROUTES_03,
  operationOf: operation => operation,
  requireVersion: request => {
    const version = namedVersion(request);
    if (version === undefined || version === dialect.name) return;
    throw new A2AError('VERSION_NOT_SUPPORTED', { detail: 'this path requires A2A-Version: 0.3, or no such header' });
  },
  unknownPath: 'unknown task verb',
  framing: FRAMING,
  encode: (operation, answer) => encodeJson(operation === 'list' ? tasksOf(answer) : answer),
  sendJson: (_request, reply, json) => bareJson(reply, 'application/json', json),
  sendError: (_request, reply, error, status) => sendRestError03(reply, error, status),
};

/** In 0.3 a list has only tasks and no pages ([A2A 0.3] 7, `tasks/list`), so the first page is sent. */
function tasksOf(answer: OperationAnswer): unknown {
  return (answer as JsonObject).tasks;
}

/** Prefix of the error names of the Java SDK, which are its class names. */
const JAVA_PACKAGE = 'io.a2a.spec';

/**
 * 0.3 does not specify the body of an error. This is the error object of JSON-RPC, bare, with the members that each SDK reads:
 * `@a2a-js/sdk` 0.3 `code`, Python 1.x `type` (0.3 only the status), Java 0.3 the first `error` at any depth, without which it
 * throws a NullPointerException. Go would take a top-level `error` for an object of 1.0.
 */
function failureOf(error: A2AError): object {
  const { data, ...rest } = rpcFailure(null, error, dialect.name).error;
  const type = errorType(error.code);
  return {
    ...rest,
    data: { ...(data as JsonObject), error: type === undefined ? error.code : `${JAVA_PACKAGE}.${type}` },
    ...(type !== undefined && { type }),
  };
}

/** Answers a fault that occurred before the request was parsed, in the form of the version that the request names. */
export function sendRestFault03(
  request: FastifyRequest,
  reply: FastifyReply,
  error: A2AError,
  status: number | undefined,
): FastifyReply {
  return namedVersion(request) === '1.0' ? sendRestError(request, reply, error, status) : sendRestError03(reply, error, status);
}

function sendRestError03(reply: FastifyReply, error: A2AError, status = error.row.http): FastifyReply {
  setErrorHeaders(reply, error);
  return bareJson(reply.code(status), 'application/json', encodeJson(failureOf(error)));
}
