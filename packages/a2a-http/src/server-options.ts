import type { ServerOptions } from 'node:https';
import { A2A_JSON_TYPE, A2AError, httpJsonFailure } from '@hopline/a2a';
import type { Limits } from '@hopline/a2a-server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Cors } from './cors.ts';

/** Characters of one part of a path; a longer one names nothing. */
const PATH_PART_CHARS_MAX = 1_024;

/** How often connections are looked at for requests that are late; milliseconds. */
export const LATE_REQUEST_CHECK_MS = 1_000;

/** Settings of the HTTP server under the door; of an HTTPS server where there are `tls` options. `cors`: the same as the door's. */
export function serverOptions(limits: Limits, tls?: ServerOptions, cors?: Cors) {
  // Node swaps its two bounds where the one for headers is the larger, as its default of 60 s is: a body would have that long, looked at every 30 s.
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
    // Longer than the longest id and what is put around it, so that every id reaches the operation that refuses it.
    routerOptions: { maxParamLength: PATH_PART_CHARS_MAX },
  } as const;
}

/** An address that cannot be decoded reaches no route; the framework's own answer would repeat it. */
function refuseUrl(reply: FastifyReply): void {
  const error = new A2AError('INVALID_PARAMS', { detail: 'the path is not percent-encoded as it should be' });
  reply
    .code(error.row.http)
    .header('content-type', A2A_JSON_TYPE)
    .send(Buffer.from(JSON.stringify(httpJsonFailure(error))));
}
