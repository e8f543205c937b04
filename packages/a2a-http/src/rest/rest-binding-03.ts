import { A2AError, type JsonObject, rpcFailure } from '@hopline/a2a';
import { dialect03Proto as dialect, errorType } from '@hopline/a2a/dialect-0.3-proto';
import { type A2AServer, type OperationResult, report, runOperation } from '@hopline/a2a-server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { setErrorHeaders } from '../error-headers.ts';
import { operationRequest } from '../operation-request.ts';
import type { Framing } from '../sse-sink.ts';
import { answerRest, sendRestError } from './rest-binding.ts';
import { bareJson, namedVersion, openRoutes, paramsOf } from './rest-request.ts';
import { type HttpMethod, REST_ROUTES_03, routeOf, routerPaths } from './routes.ts';

const PREFIXES = ['', '/a2a'];

/** What all paths of 0.3 begin with, and to a request of 1.0 a tenant. */
const V1 = 'v1';

/** Frames are bare, and an error is an event of that name: so `@a2a-js/sdk` 0.3 reads them. */
const FRAMING: Framing = { before: '', after: '', failure: failureOf, failureEvent: 'error' };

/** Opens the HTTP+JSON binding of A2A 0.3 on a scope whose bodies are read as bytes. */
export function registerRest03(scope: FastifyInstance, server: A2AServer): void {
  openRoutes(scope, server, PREFIXES, routerPaths(REST_ROUTES_03), (path, request, reply) => {
    const params = request.params as Record<string, string>;
    if (namedVersion(request) !== '1.0') return answerRest03(server, path, params, request, reply);
    return answerRest(server, path.slice(`/${V1}`.length), { ...params, tenant: V1 }, request, reply);
  });
}

/** One request in, one JSON answer or one event stream out. Never throws. */
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
      throw new A2AError('VERSION_NOT_SUPPORTED', { detail: 'at this path it is 0.3' });
    const routed = routeOf(REST_ROUTES_03, path, pathParams);
    if (routed === undefined) throw new A2AError('METHOD_NOT_FOUND', { detail: 'there is no such verb of a task' });
    const operation = routed.route[request.method as HttpMethod];
    if (operation === undefined) return refuseMethod(reply, Object.keys(routed.route));
    const params = paramsOf(request, routed.params);
    const answer = await runOperation(
      server,
      operation,
      operationRequest(server, request, reply, { dialect, params, framing: FRAMING }),
    );
    if (answer === 'streamed') return undefined;
    return bareJson(reply, 'application/json', operation === 'list' ? tasksOf(answer) : answer);
  } catch (thrown) {
    const error = A2AError.from(thrown);
    report(server, error);
    return reply.sent ? undefined : sendRestError03(reply, error);
  }
}

/** 0.3 answers a list with the tasks alone, and knows no pages ([A2A 0.3] 7, `tasks/list`): it is the first one. */
function tasksOf(answer: Exclude<OperationResult, 'streamed'>): unknown {
  return (answer as JsonObject).tasks;
}

function refuseMethod(reply: FastifyReply, allowed: string[]): FastifyReply {
  const error = new A2AError('METHOD_NOT_FOUND', { detail: `this path takes ${allowed.join(' and ')}` });
  return sendRestError03(reply.header('allow', allowed.join(', ')), error, 405);
}

/** What the SDK for Java puts before the names of errors, which are classes of its own. */
const JAVA_PACKAGE = 'io.a2a.spec';

/**
 * 0.3 says nothing of the body of an error. This is the error object of JSON-RPC, bare, with what each SDK looks at: `@a2a-js/sdk` 0.3 at `code`, Python 1.x at `type` (0.3 at the status alone),
 * Java 0.3 at the first `error` at any depth, without which it throws a NullPointerException. At the top Go would take that one for an object of 1.0.
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

/** What happened before there was a request, in the version it names. */
export function sendRestFault03(request: FastifyRequest, reply: FastifyReply, error: A2AError): FastifyReply {
  return namedVersion(request) === '1.0' ? sendRestError(request, reply, error) : sendRestError03(reply, error);
}

function sendRestError03(reply: FastifyReply, error: A2AError, status = error.row.http): FastifyReply {
  setErrorHeaders(reply, error);
  return bareJson(reply.code(status), 'application/json', failureOf(error));
}
