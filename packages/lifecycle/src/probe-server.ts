import type { FastifyReply } from 'fastify';
import { limitProbeConnections } from './probe-connections.ts';
import { mountProbes, type ProbeOptions } from './probes.ts';

/** A request whose headers are incomplete after this time is closed. A probe sends its few headers at once. */
const PROBE_HEADERS_MS_MAX = 1_000;
/**
 * An idle connection is closed after this time, so that idle ones cannot use all slots. Above READY_CHECK_MS_MAX.
 */
const PROBE_IDLE_MS_MAX = 2_000;

export interface ProbeServer {
  /** `http://host:port`, with the actual port for port 0. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * The HTTP server of a service without a public one. Any path except the probes is a 404; no response contains an error message.
 */
export async function startProbeServer(
  options: ProbeOptions & { readonly host: string; readonly port: number },
): Promise<ProbeServer> {
  // Loaded here, because a quarter of the modules of a program that only reads the settings of the log would be those of fastify.
  const { default: fastify } = await import('fastify');
  const app = fastify({
    logger: false,
    // Scrapers keep their connections open, and a drain must not wait for them.
    forceCloseConnections: true,
    connectionTimeout: PROBE_IDLE_MS_MAX,
    http: { headersTimeout: PROBE_HEADERS_MS_MAX, connectionsCheckingInterval: PROBE_HEADERS_MS_MAX / 2 },
    bodyLimit: 1,
    // The default response to a malformed URL quotes it.
    frameworkErrors: (_error, _request, reply: FastifyReply) => reply.code(400).send({ error: 'bad request' }),
  });
  limitProbeConnections(app.server);
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'not found' }));
  app.setErrorHandler<{ statusCode?: number }>((error, _request, reply) => {
    const status = error.statusCode ?? 500;
    return reply.code(status).send({ error: status < 500 ? 'bad request' : 'internal' });
  });
  mountProbes(app, options, options.hosts, { error: options.hosts.refusal });
  const url = await app.listen({ host: options.host, port: options.port });
  return { url, close: () => app.close() };
}
