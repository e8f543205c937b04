import { A2AError, DIALECTS } from '@hopline/a2a';
import type { A2AServer, Limits } from '@hopline/a2a-server';
import type { PublishedCard } from '@hopline/agent-card/signing';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { registerAgentCard } from './agent-card-route.ts';
import type { Cors } from './cors.ts';
import { answerJsonRpc, sendError } from './json-rpc-binding.ts';
import { readBodiesThatAreRefused } from './refused-body.ts';
import { registerOpenApi } from './rest/openapi.ts';
import { registerRest, sendRestError } from './rest/rest-binding.ts';
import { registerRest03, sendRestFault03 } from './rest/rest-binding-03.ts';

export type A2AHttpOptions = {
  card: PublishedCard;
  /** Absent: pages of other origins cannot use the door. */
  cors?: Cors | undefined;
};

/** A connection that is not idle so long after its door began to close is cut; milliseconds. Longer than streams take to end, and than a read waits for the log. */
export const CLOSE_MS_MAX = 6_000;

const JSON_TYPES = ['application/json', 'application/a2a+json'];
const PATHS = ['/', '/a2a'];

/**
 * Opens the HTTP bindings of a door on a Fastify app: JSON-RPC at `/` and `/a2a` in the dialects 1.0, 0.3 and legacy (April 2025), HTTP+JSON of 1.0 and, below `/v1`, of 0.3, the agent card, JSON for
 * everything else. Needs nothing of the app but `serverOptions`. Closing the app drains the door and closes it: streams are told to come back and end.
 */
export function registerA2A(app: FastifyInstance, server: A2AServer, { card, cors }: A2AHttpOptions): void {
  const { limits, metrics } = server;
  app.server.maxConnections = limits.connectionsMax;
  readBodiesThatAreRefused(app);
  // An answer that its client takes nothing of for so long is dropped with its connection: Node keeps both for ever. Progress of a write begins the time anew.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    reply.raw.setTimeout(limits.viewerStallMsMax);
    done();
  });
  app.register(async scope => {
    takeJsonBytes(scope, limits);
    allowPages(scope, cors);
    scope.setErrorHandler<{ statusCode?: number }>((error, _request, reply) => sendFault(server, error, reply));
    registerAgentCard(scope, card);
    for (const path of PATHS) {
      scope.post(path, (request, reply) => {
        metrics?.bytesIn.add(Number(request.headers['content-length'] ?? 0));
        return answerJsonRpc(server, request, reply);
      });
    }
  });
  app.register(async scope => {
    takeJsonBytes(scope, limits);
    allowPages(scope, cors);
    scope.setErrorHandler<{ statusCode?: number }>((error, request, reply) =>
      sendRestError(request, reply, faultOf(server, error)),
    );
    registerRest(scope, server);
    registerOpenApi(scope, card);
  });
  app.register(async scope => {
    takeJsonBytes(scope, limits);
    allowPages(scope, cors);
    scope.setErrorHandler<{ statusCode?: number }>((error, request, reply) =>
      sendRestFault03(request, reply, faultOf(server, error)),
    );
    registerRest03(scope, server);
  });
  // Fastify waits for open responses before it closes: streams must end first, or it waits for ever. So it would for half a request: Node looks for late ones no more once its server closes.
  app.addHook('preClose', async () => {
    server.drain();
    setTimeout(() => app.server.closeAllConnections(), CLOSE_MS_MAX).unref();
  });
  app.addHook('onClose', async () => server.close());
  // Before the body is read: what is wrong with that would be answered first, by the framework and in its words.
  app.addHook('onRequest', async (request, reply) => (request.is404 ? answerNothingThere(request, reply, cors) : undefined));
  app.setNotFoundHandler((_request, reply) => sendNotFound(reply));
}

/** In the scopes of the bindings, not for the whole app: probes and what else a service has there is not for pages. */
function allowPages(scope: FastifyInstance, cors: Cors | undefined): void {
  if (cors !== undefined) scope.addHook('onRequest', async (request, reply) => cors.allow(request, reply));
}

/** No path takes OPTIONS: so preflights, which have no credentials, are answered before any binding. */
function answerNothingThere(request: FastifyRequest, reply: FastifyReply, cors: Cors | undefined): FastifyReply {
  cors?.allow(request, reply);
  return cors?.answersPreflight(request, reply) ? reply : sendNotFound(reply);
}

function sendNotFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).send({ error: 'not found' });
}

/** Bodies are parsed by the door: one that is not JSON is an error of the binding, not of HTTP (S4-29). */
function takeJsonBytes(scope: FastifyInstance, limits: Limits): void {
  scope.removeAllContentTypeParsers();
  const options = { parseAs: 'buffer', bodyLimit: limits.bodyBytesMax } as const;
  scope.addContentTypeParser(JSON_TYPES, options, (_request, body, done) => done(null, body));
}

/** What happened before there was a request, as JSON-RPC has it: only here with an HTTP status. */
function sendFault(server: A2AServer, thrown: { statusCode?: number }, reply: FastifyReply): FastifyReply {
  const error = faultOf(server, thrown);
  const status = error.code === 'CONTENT_TYPE_NOT_SUPPORTED' ? 415 : error.row.http;
  return sendError(reply, null, error, DIALECTS['1.0'], { status });
}

/** Too large, not JSON by its type, cut. Never an error's own text. */
function faultOf(server: A2AServer, thrown: { statusCode?: number }): A2AError {
  const status = thrown.statusCode ?? 500;
  if (status === 413) {
    return new A2AError('REQUEST_TOO_LARGE', { detail: `the body is larger than ${server.limits.bodyBytesMax} bytes` });
  }
  if (status === 415) return new A2AError('CONTENT_TYPE_NOT_SUPPORTED', { detail: 'send application/json' });
  if (status < 500) return new A2AError('PARSE_ERROR', { detail: 'the body does not come as its headers say' });
  server.logger.error({ err: thrown }, 'request failed');
  return new A2AError('INTERNAL_ERROR');
}
