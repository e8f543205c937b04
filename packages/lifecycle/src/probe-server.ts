import fastify, { type FastifyReply } from 'fastify';
import { type ProbeOptions, registerProbes } from './probes.ts';

/** Probes and scrapers need a handful of connections; more are refused. */
export const PROBE_CONNECTIONS_MAX = 64;
/** A connection without a byte for this long is cut, so that idle ones cannot take all places; milliseconds. Above READY_CHECK_MS_MAX. */
export const PROBE_IDLE_MS_MAX = 2_000;

export interface ProbeServer {
  /** `http://host:port`, with the real port when 0 was asked for. */
  readonly url: string;
  close(): Promise<void>;
}

/** The only HTTP server of a service that has no public one. Everything else than the probes is a 404; no answer holds an error's text. */
export async function startProbeServer(
  options: ProbeOptions & { readonly host: string; readonly port: number },
): Promise<ProbeServer> {
  const app = fastify({
    logger: false,
    // Scrapers keep their connections open; a drain must not wait for them.
    forceCloseConnections: true,
    connectionTimeout: PROBE_IDLE_MS_MAX,
    bodyLimit: 1,
    // Without this the answer to a malformed URL quotes it.
    frameworkErrors: (_error, _request, reply: FastifyReply) => reply.code(400).send({ error: 'bad request' }),
  });
  app.server.maxConnections = PROBE_CONNECTIONS_MAX;
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'not found' }));
  app.setErrorHandler<{ statusCode?: number }>((error, _request, reply) => {
    const status = error.statusCode ?? 500;
    return reply.code(status).send({ error: status < 500 ? 'bad request' : 'internal' });
  });
  registerProbes(app, options);
  const url = await app.listen({ host: options.host, port: options.port });
  return { url, close: () => app.close() };
}
