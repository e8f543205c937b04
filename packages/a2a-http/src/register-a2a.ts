import { A2AError, type AgentCard, DIALECTS } from '@hopline/a2a';
import type { Profile, Role } from '@hopline/events';
import type { Log } from '@hopline/log';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { registerAgentCard } from './agent-card-route.ts';
import type { Door } from './door.ts';
import { TaskFeeds } from './feed/task-feeds.ts';
import { answerJsonRpc, sendError } from './json-rpc-door.ts';
import { LIMITS, type Limits } from './limits.ts';
import { OpenStreams } from './stream/open-streams.ts';

export type A2AHttpOptions = {
  log: Log;
  /** Who works on the tasks that come in here, and whose tasks can be seen here: `supervisor`, or `agent.<name>` for an agent that is called directly (S0-46). */
  role: Role;
  profile: Profile;
  card: () => AgentCard;
  logger: Logger;
  metrics?: HopMetrics;
  /** Instead of LIMITS. Give the same to `serverOptions`. */
  limits?: Partial<Limits>;
};

const JSON_TYPES = ['application/json', 'application/a2a+json'];
const PATHS = ['/', '/a2a'];

/**
 * Opens an A2A door on a Fastify app: JSON-RPC at `/` and `/a2a` in the dialects 1.0 and 0.3, the agent card, JSON for everything else.
 * Needs nothing of the app but `serverOptions`. Closing the app drains: streams are told to come back and end.
 */
export function registerA2A(app: FastifyInstance, options: A2AHttpOptions): void {
  const { log, role, profile, logger, metrics } = options;
  const limits = { ...LIMITS, ...options.limits };
  const feeds = new TaskFeeds(log, role, limits);
  const streams = new OpenStreams(limits, metrics);
  const door: Door = { log, role, profile, limits, logger, metrics, feeds, streams };
  app.server.maxConnections = limits.connectionsMax;
  app.register(async scope => {
    scope.removeAllContentTypeParsers();
    // Parsed by the door: a body that is not JSON is a JSON-RPC error, not an HTTP one (S4-29).
    scope.addContentTypeParser(JSON_TYPES, { parseAs: 'buffer', bodyLimit: limits.bodyBytesMax }, (_request, body, done) =>
      done(null, body),
    );
    scope.setErrorHandler<{ statusCode?: number }>((error, _request, reply) => sendFault(door, error, reply));
    registerAgentCard(scope, options.card);
    for (const path of PATHS) {
      scope.post(path, (request, reply) => {
        metrics?.bytesIn.add(Number(request.headers['content-length'] ?? 0));
        return answerJsonRpc(door, request, reply);
      });
    }
  });
  // Fastify waits for open responses before it closes: streams must end first, or it waits for ever.
  app.addHook('preClose', async () => streams.drain());
  app.addHook('onClose', async () => feeds.close());
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'not found' }));
}

/** What happened before there was a request: too large, not JSON by its type, cut. Never an error's own text. */
function sendFault(door: Door, thrown: { statusCode?: number }, reply: FastifyReply): FastifyReply {
  const status = thrown.statusCode ?? 500;
  const dialect = DIALECTS['1.0'];
  if (status === 413) {
    const detail = `the body is larger than ${door.limits.bodyBytesMax} bytes`;
    // What is left of the body is not read: the connection is of no more use.
    return sendError(reply.header('connection', 'close'), null, new A2AError('REQUEST_TOO_LARGE', { detail }), dialect);
  }
  if (status === 415) {
    return sendError(reply, null, new A2AError('CONTENT_TYPE_NOT_SUPPORTED', { detail: 'send application/json' }), dialect, {
      status: 415,
    });
  }
  if (status < 500) return sendError(reply, null, new A2AError('INVALID_REQUEST'), dialect, { status });
  door.logger.error({ err: thrown }, 'request failed');
  return sendError(reply, null, new A2AError('INTERNAL_ERROR'), dialect, { status: 500 });
}
