import { A2AError, type JsonObject, rpcFailure } from '@hopline/a2a';
import { dialect03Proto as dialect, errorType } from '@hopline/a2a/dialect-0.3-proto';
import { type A2AServer, type OperationAnswer, report, runOperation } from '@hopline/a2a-server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { setErrorHeaders } from '../error-headers.ts';
import { operationRequest } from '../operation-request.ts';
import { namedVersion } from '../read-request.ts';
import type { Framing } from '../sse-sink.ts';
import { answerRest, sendRestError } from './rest-binding.ts';
import { bareJson, encodeJson, openRoutes, paramsOf } from './rest-request.ts';
import { type HttpMethod, REST_ROUTES_03, routeOf, routerPaths } from './routes.ts';

const PREFIXES = ['', '/a2a'];

/** Prefix of all paths of 0.3. In a 1.0 request it is a tenant. */
const V1 = 'v1';

/** Frames are bare, and an error is an event with this name, as `@a2a-js/sdk` 0.3 expects. */
const FRAMING: Framing = { before: '', after: '', failure: failureOf, failureEvent: 'error' };

/** Registers the HTTP+JSON binding of A2A 0.3 on a scope that reads bodies as bytes. */
export function registerRest03(scope: FastifyInstance, server: A2AServer): void {
  openRoutes(scope, server, PREFIXES, routerPaths(REST_ROUTES_03), (path, request, reply) => {
    const params = request.params as Record<string, string>;
    if (namedVersion(request) !== '1.0') return answerRest03(server, path, params, request, reply);
    return answerRest(server, path.slice(`/${V1}`.length), { ...params, tenant: V1 }, request, reply);
  });
}

/** Answers one request with JSON or an event stream. Never throws. */
async function answerRest03(
  server: A2AServer,
  path: string,
  pathParams: Record<string, string>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  try {
    const version = namedVersion(request);
    if (version !== undefined && version !== dialect.name)
      throw new A2AError('VERSION_NOT_SUPPORTED', { detail: 'this path requires A2A-Version: 0.3, or no such header' });
    const routed = routeOf(REST_ROUTES_03, path, pathParams);
    if (routed === undefined) throw new A2AError('METHOD_NOT_FOUND', { detail: 'unknown task verb' });
    const operation = routed.route[request.method as HttpMethod];
    if (operation === undefined) return refuseMethod(server, request, reply, Object.keys(routed.route));
    const params = paramsOf(request, routed.params);
    const encode = (answer: OperationAnswer) => encodeJson(operation === 'list' ? tasksOf(answer) : answer);
    const answer = await runOperation(
      server,
      operation,
      operationRequest(server, request, reply, { binding: 'http', dialect, params, encode, framing: FRAMING }),
    );
    return answer === 'streamed' ? undefined : bareJson(reply, 'application/json', answer);
  } catch (thrown) {
    const error = A2AError.from(thrown);
    report(server, error, { binding: 'http', headers: request.headers });
    return reply.sent ? undefined : sendRestError03(reply, error);
  }
}

/** In 0.3 a list has only tasks and no pages ([A2A 0.3] 7, `tasks/list`), so the first page is sent. */
function tasksOf(answer: OperationAnswer): unknown {
  return (answer as JsonObject).tasks;
}

function refuseMethod(server: A2AServer, request: FastifyRequest, reply: FastifyReply, allowed: string[]): FastifyReply {
  const error = new A2AError('METHOD_NOT_FOUND', { detail: `this path supports ${allowed.join(' and ')}` });
  report(server, error, { binding: 'http', headers: request.headers });
  return sendRestError03(reply.header('allow', allowed.join(', ')), error, 405);
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
