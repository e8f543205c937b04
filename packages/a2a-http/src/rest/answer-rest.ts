import { A2AError, type Dialect, type Operation } from '@hopline/a2a';
import { type A2AServer, type OperationAnswer, report, runOperation } from '@hopline/a2a-server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { operationRequest } from '../operation-request.ts';
import { reconnects } from '../request-values.ts';
import type { Framing } from '../sse-sink.ts';
import { paramsOf } from './rest-request.ts';
import { type HttpMethod, type RestRoutes, routeOf } from './routes.ts';

/** The differences between the HTTP+JSON bindings of two versions. `T`: the name of an operation in the routes. */
export type RestForm<T> = {
  dialect: Dialect;
  routes: RestRoutes<T>;
  /** Throws METHOD_NOT_FOUND. */
  operationOf(name: T): Operation;
  /** Throws VERSION_NOT_SUPPORTED. */
  requireVersion(request: FastifyRequest): void;
  /** Error detail for a path that is in no route. */
  unknownPath: string;
  framing: Framing;
  encode(operation: Operation, answer: OperationAnswer): Buffer;
  sendJson(request: FastifyRequest, reply: FastifyReply, json: Buffer): FastifyReply;
  sendError(request: FastifyRequest, reply: FastifyReply, error: A2AError, status?: number): FastifyReply;
};

/** Answers one request with JSON or an event stream. Never throws. `path`: the pattern of the router, without its prefix. */
export async function answerRest<T>(
  form: RestForm<T>,
  server: A2AServer,
  path: string,
  pathParams: Record<string, string>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  try {
    const { dialect, framing } = form;
    form.requireVersion(request);
    const routed = routeOf(form.routes, path, pathParams);
    if (routed === undefined) throw new A2AError('METHOD_NOT_FOUND', { detail: form.unknownPath });
    const name = routed.route[request.method as HttpMethod];
    if (name === undefined) return refuseMethod(form, server, request, reply, Object.keys(routed.route));
    const operation = form.operationOf(name);
    const params = paramsOf(request, routed.params);
    const encode = (answer: OperationAnswer) => form.encode(operation, answer);
    const answer = await runOperation(
      server,
      operation,
      operationRequest(server, request, reply, {
        binding: 'http',
        dialect,
        params,
        reconnects: reconnects(request),
        encode,
        framing,
      }),
    );
    if (answer === 'streamed') return undefined;
    // With any other answer an EventSource would connect again every few seconds, as long as its page is open.
    if (operation === 'subscribe') return reply.code(204).header('cache-control', 'no-store').send();
    return form.sendJson(request, reply, answer);
  } catch (thrown) {
    const error = A2AError.from(thrown);
    report(server, error, { binding: 'http', headers: request.headers });
    return reply.sent ? undefined : form.sendError(request, reply, error);
  }
}

function refuseMethod<T>(
  form: RestForm<T>,
  server: A2AServer,
  request: FastifyRequest,
  reply: FastifyReply,
  allowed: string[],
): FastifyReply {
  const error = new A2AError('METHOD_NOT_FOUND', { detail: `this path supports ${allowed.join(' and ')}` });
  report(server, error, { binding: 'http', headers: request.headers });
  return form.sendError(request, reply.header('allow', allowed.join(', ')), error, 405);
}
