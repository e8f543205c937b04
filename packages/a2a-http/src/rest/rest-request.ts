import { paramsOfBody, paramsOfQuery } from '@hopline/a2a';
import type { A2AServer } from '@hopline/a2a-server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { jsonOf } from '../request-values.ts';
import { HTTP_METHODS } from './routes.ts';

/** Methods that are answered with 405 rather than 404. */
const OTHER_METHODS = ['HEAD', 'PUT', 'PATCH', 'TRACE', 'QUERY'];

type Answer = (path: string, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>;

/** Registers paths under each prefix, for all methods. */
export function openRoutes(scope: FastifyInstance, server: A2AServer, prefixes: string[], paths: string[], answer: Answer): void {
  for (const prefix of prefixes) {
    for (const path of paths) {
      const url = prefix + path;
      const handler = (request: FastifyRequest, reply: FastifyReply) => {
        server.metrics?.received.add(Number(request.headers['content-length'] ?? 0));
        return answer(path, request, reply);
      };
      // A HEAD request for a subscription would hold a stream open without a reader.
      scope.route({ method: [...HTTP_METHODS], url, exposeHeadRoute: false, handler });
      // Checked before the body is read: the method is wrong whatever the body is.
      scope.route({ method: OTHER_METHODS, url, exposeHeadRoute: false, onRequest: handler, handler });
    }
  }
}

/** Path parameters override members of the body. */
export function paramsOf(request: FastifyRequest, path: Record<string, string>): unknown {
  if (request.method !== 'POST') return { ...paramsOfQuery(request.query), ...path };
  const empty = !Buffer.isBuffer(request.body) || request.body.length === 0;
  return paramsOfBody(empty ? undefined : jsonOf(request.body), path);
}

export function encodeJson(body: unknown): Buffer {
  return Buffer.from(JSON.stringify(body));
}

/** Sent as bytes: the framework would add a charset, which no JSON media type has. */
export function bareJson(reply: FastifyReply, type: string, json: Buffer): FastifyReply {
  return (
    reply
      .header('content-type', type)
      // Shared caches do not key on API key headers, so they would serve one caller's tasks to another.
      .header('cache-control', 'no-store')
      .send(json)
  );
}
