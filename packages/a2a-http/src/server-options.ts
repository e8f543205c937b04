import type { IncomingMessage } from 'node:http';
import type { ServerOptions } from 'node:https';
import { A2A_JSON_TYPE, A2AError, httpJsonFailure } from '@hopline/a2a';
import type { Limits } from '@hopline/a2a-server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Cors } from './cors.ts';

/** Characters of one path segment; a longer one matches no route. */
const PATH_PART_CHARS_MAX = 1_024;

/** Interval between two searches for late requests. */
export const LATE_REQUEST_CHECK_MS = 1_000;

/** Options of the HTTP server, or of an HTTPS server when `tls` is given. `cors`: the same instance as for `registerA2A`. */
export function serverOptions(limits: Limits, tls?: ServerOptions, cors?: Cors) {
  // Node swaps the two timeouts when headersTimeout is the larger one. With its default of 60 s, bodies would have 60 s, checked every 30
  // s.
  const server = { headersTimeout: limits.requestMsMax, connectionsCheckingInterval: LATE_REQUEST_CHECK_MS };
  return {
    http: server,
    https: tls === undefined ? null : { ...tls, ...server },
    bodyLimit: limits.bodyBytesMax,
    maxRequestsPerSocket: limits.requestsPerConnectionMax,
    requestTimeout: limits.requestMsMax,
    logger: false,
    forceCloseConnections: 'idle',
    frameworkErrors: (_error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      cors?.allow(request, reply);
      if (cors?.answersPreflight(request, reply) !== true) refuseUrl(reply);
    },
    // The dialects check params, so no route has a schema. The default compilers would load ajv's second format and make an instance of it at each start.
    schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
    // Longer than the longest id and the path around it, so that every id reaches the operation that validates it.
    routerOptions: { maxParamLength: PATH_PART_CHARS_MAX },
    rewriteUrl: ({ url = '/' }: IncomingMessage) => withColons(url),
  } as const;
}

/** Some clients and proxies send `/message%3Asend`. The router decodes a colon in parameters only. */
function withColons(url: string): string {
  if (!/%3a/i.test(url)) return url;
  const query = url.indexOf('?');
  const path = query < 0 ? url : url.slice(0, query);
  return path.replaceAll(/%3a/gi, ':') + url.slice(path.length);
}

function refuseSchema(): never {
  throw new Error('routes have no schemas');
}

/** A URL that cannot be decoded matches no route; the framework's own response would echo it. */
function refuseUrl(reply: FastifyReply): void {
  const error = new A2AError('INVALID_PARAMS', { detail: 'the path must be valid percent-encoding' });
  reply
    .code(error.row.http)
    .header('content-type', A2A_JSON_TYPE)
    .send(Buffer.from(JSON.stringify(httpJsonFailure(error))));
}
