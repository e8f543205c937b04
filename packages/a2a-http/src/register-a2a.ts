import { type A2AServer, type Limits, report } from '@hopline/a2a-server';
import type { PublishedCard } from '@hopline/agent-card/signing';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { registerAgentCard } from './agent-card-route.ts';
import { type ListedAgent, registerAgents } from './agents-route.ts';
import { isForBrowser, sendBrowserPage } from './browser-page.ts';
import type { Cors } from './cors.ts';
import { faultOf, refusedStatus } from './framework-fault.ts';
import type { Front } from './front.ts';
import { answerJsonRpc, dialectOfErrors, sendError } from './json-rpc-binding.ts';
import { registerOpenApi } from './openapi/openapi.ts';
import { discardRefusedBodies } from './refused-body.ts';
import { guardBodies, guardHosts, guardPages, type RequestGuardOptions, refuseCodings } from './request-guard.ts';
import { registerRest, sendRestError } from './rest/rest-binding.ts';
import { registerRest03, sendRestFault03 } from './rest/rest-binding-03.ts';
import { registerTaskAudit, type TaskAudits } from './task-audit-route.ts';
import { registerTaskDeliveries } from './task-deliveries-route.ts';
import { type ExportTask, registerTaskExport } from './task-export-route.ts';

export type A2AHttpOptions = {
  card: PublishedCard;
  /** Absent: pages of other origins cannot read responses. */
  cors?: Cors | undefined;
  /** Absent: callers authenticate. */
  guard?: RequestGuardOptions | undefined;
  /** The agents behind the server. Absent: GET `/agents` does not exist. */
  agents?: () => readonly ListedAgent[];
  /** Audits a task. Absent: the server does not audit tasks. */
  audits?: TaskAudits;
  /** Exports a task as a file. Absent: the server does not export tasks. */
  exportTask?: ExportTask;
  /** Other protocols on the same server. */
  fronts?: readonly Front[];
  /** Linked on the page for people who open the server in a browser. Absent: the page has no link. */
  consoleUrl?: string | undefined;
};

/**
 * How long busy connections may stay open after the server has begun to close: longer than streams need to end, and longer than a read
 * waits for the log.
 */
export const CLOSE_MS_MAX = 6_000;

const JSON_TYPES = ['application/json', 'application/a2a+json'];
/** httpx appends a slash to the path of a base URL. */
const PATHS = ['/', '/a2a', '/a2a/'];

/**
 * Registers the HTTP bindings of a server on a Fastify app: JSON-RPC at `/` and `/a2a` in the dialects 1.0, 0.3 and legacy (April
 * 2025), HTTP+JSON of 1.0 and, below `/v1`, of 0.3, the agent card, the list of agents, the audit, the webhook deliveries and the
 * export of a task, and JSON 404s elsewhere. The app needs only `serverOptions`. Closing the app drains and closes the server:
 * streams ask their clients to reconnect, and end. From `endConnections` on, each response is the last one of its connection.
 */
export function registerA2A(app: FastifyInstance, server: A2AServer, options: A2AHttpOptions): { endConnections(): void } {
  const { cors, guard, consoleUrl } = options;
  const { limits } = server;
  app.server.maxConnections = limits.connectionsMax;
  discardRefusedBodies(app);
  if (guard !== undefined) guardHosts(app, guard);
  app.setErrorHandler<{ statusCode?: number }>((error, _request, reply) => sendOwnFault(server, error, reply));
  let isClosing = false;
  let endsConnections = false;
  // If a client reads nothing of a response for this long, the response is dropped with its connection: Node would keep both indefinitely.
  // Progress restarts the time.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    reply.raw.setTimeout(limits.viewerStallMsMax);
    if (isClosing || endsConnections) reply.header('connection', 'close');
    done();
  });
  // Node closes the connections that are idle when closing begins. A connection whose response ends later, such as a stream, would stay
  // open, and closing would wait for it.
  app.addHook('onResponse', (request, _reply, done) => {
    if (isClosing) request.raw.socket.destroySoon();
    done();
  });
  for (const register of [registerJsonRpc, registerHttpJson, registerHttpJson03, registerFronts]) {
    app.register(async scope => {
      takeJsonBytes(scope, limits);
      allowPages(scope, cors);
      if (guard !== undefined) guardPages(scope, guard);
      refuseCodings(scope);
      guardBodies(scope, server);
      register(scope, server, options);
    });
  }
  // Fastify waits for open responses before it closes, so streams must end first. It would also wait for incomplete requests:
  // Node no longer enforces request timeouts once its server closes.
  app.addHook('preClose', async () => {
    isClosing = true;
    server.drain();
    setTimeout(() => app.server.closeAllConnections(), CLOSE_MS_MAX).unref();
  });
  app.addHook('onClose', async () => server.close());
  // Runs before the body is read. Otherwise the framework would report faults of the body first, with its own errors.
  app.addHook('onRequest', async (request, reply) =>
    request.is404 ? answerUnknownPath(request, reply, { cors, consoleUrl }) : undefined,
  );
  app.setNotFoundHandler((_request, reply) => sendNotFound(reply));
  return {
    endConnections: () => {
      endsConnections = true;
    },
  };
}

/** JSON-RPC in all dialects, and the agent card. */
function registerJsonRpc(scope: FastifyInstance, server: A2AServer, { card }: A2AHttpOptions): void {
  scope.setErrorHandler<{ statusCode?: number }>((error, request, reply) => sendFault(server, error, request, reply));
  registerAgentCard(scope, card);
  for (const path of PATHS) {
    scope.post(path, (request, reply) => {
      server.metrics?.received.add(Number(request.headers['content-length'] ?? 0));
      return answerJsonRpc(server, request, reply);
    });
  }
}

/** HTTP+JSON of 1.0, and the routes outside A2A, whose errors have the same form. */
function registerHttpJson(scope: FastifyInstance, server: A2AServer, options: A2AHttpOptions): void {
  const { card, agents, audits, exportTask, fronts = [] } = options;
  answerRestFaults(scope, server, sendRestError);
  registerRest(scope, server);
  if (agents !== undefined) registerAgents(scope, server, agents);
  if (audits !== undefined) registerTaskAudit(scope, server, audits);
  if (exportTask !== undefined) registerTaskExport(scope, server, exportTask);
  if (server.push) registerTaskDeliveries(scope, server);
  registerOpenApi(scope, card, {
    listsAgents: agents !== undefined,
    auditsTasks: audits !== undefined,
    exportsTasks: exportTask !== undefined,
    listsDeliveries: server.push,
    fronts,
  });
}

function registerHttpJson03(scope: FastifyInstance, server: A2AServer): void {
  answerRestFaults(scope, server, sendRestFault03);
  registerRest03(scope, server);
}

/** Other protocols, with errors of HTTP+JSON. */
function registerFronts(scope: FastifyInstance, server: A2AServer, { fronts = [] }: A2AHttpOptions): void {
  answerRestFaults(scope, server, (request, reply, error, status) =>
    sendRestError(request, reply, error, status ?? (error.code === 'CONTENT_TYPE_NOT_SUPPORTED' ? 415 : undefined)),
  );
  for (const front of fronts) front(scope, server);
}

/** Reports requests that the framework refuses, and answers them with an error of the binding. */
function answerRestFaults(scope: FastifyInstance, server: A2AServer, send: typeof sendRestFault03): void {
  scope.setErrorHandler<{ statusCode?: number }>((thrown, request, reply) => {
    const error = faultOf(server, thrown);
    report(server, error, { binding: 'http', headers: request.headers });
    return send(request, reply, error, refusedStatus(thrown));
  });
}

/** Only in the scopes of the bindings: pages need neither probes nor other routes of a service. */
function allowPages(scope: FastifyInstance, cors: Cors | undefined): void {
  if (cors !== undefined) scope.addHook('onRequest', async (request, reply) => cors.allow(request, reply));
}

/** No path supports OPTIONS, so preflights, which have no credentials, are answered before any binding. */
function answerUnknownPath(
  request: FastifyRequest,
  reply: FastifyReply,
  { cors, consoleUrl }: Pick<A2AHttpOptions, 'cors' | 'consoleUrl'>,
): FastifyReply {
  if (isForBrowser(request)) return sendBrowserPage(reply, consoleUrl);
  cors?.allow(request, reply);
  return cors?.answersPreflight(request, reply) ? reply : sendNotFound(reply);
}

/** People try the address of a server in a plain HTTP client. */
const NOT_FOUND = { error: 'not found', hint: 'A2A: POST / takes JSON-RPC; the agent card is at /.well-known/agent-card.json' };

function sendNotFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).send(NOT_FOUND);
}

/** The bindings parse bodies, because invalid JSON is an error of the binding rather than of HTTP. */
function takeJsonBytes(scope: FastifyInstance, limits: Limits): void {
  scope.removeAllContentTypeParsers();
  const options = { parseAs: 'buffer', bodyLimit: limits.bodyBytesMax } as const;
  scope.addContentTypeParser(JSON_TYPES, options, (_request, body, done) => done(null, body));
}

/** Sends a fault that occurred before the request was parsed as a JSON-RPC error. Only such faults have an HTTP status other than 200. */
function sendFault(
  server: A2AServer,
  thrown: { statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const error = faultOf(server, thrown);
  report(server, error, { binding: 'jsonrpc', headers: request.headers });
  const status = refusedStatus(thrown) ?? (error.code === 'CONTENT_TYPE_NOT_SUPPORTED' ? 415 : error.row.http);
  return sendError(reply, null, error, dialectOfErrors(request), { status });
}

/** Answers a fault at a path outside A2A, such as a probe. */
function sendOwnFault(server: A2AServer, thrown: { statusCode?: number }, reply: FastifyReply): FastifyReply {
  const error = faultOf(server, thrown);
  report(server, error);
  return reply.code(refusedStatus(thrown) ?? error.row.http).send({ error: error.message });
}
