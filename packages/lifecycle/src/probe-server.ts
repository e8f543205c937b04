import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { limitProbeConnections } from './probe-connections.ts';
import { isProbePath, jsonAnswer, MISDIRECTED_STATUS, type ProbeAnswer, type ProbeOptions, Probes } from './probes.ts';

/** A request whose headers are incomplete after this time is closed. A probe sends its few headers at once. */
const PROBE_HEADERS_MS_MAX = 1_000;
/**
 * A connection without a request is closed after this time, so that idle ones cannot use all slots. The same applies to a request whose
 * body is incomplete. It is longer than READY_CHECK_MS_MAX.
 */
const PROBE_IDLE_MS_MAX = 2_000;
/** An answered connection stays open for this time, which is longer than the interval of a scraper. */
const PROBE_KEPT_MS_MAX = 72_000;

export interface ProbeServer {
  /** `http://host:port`, with the actual port for port 0. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * The HTTP server of a service without a public server. Any path except the probes is a 404, and no response contains an error message. It
 * uses node:http, because loading and starting fastify for three paths takes 70 ms of CPU, a sixth of a relay's start.
 */
export async function startProbeServer(
  options: ProbeOptions & { readonly host: string; readonly port: number },
): Promise<ProbeServer> {
  const probes = new Probes(options);
  const limits = {
    headersTimeout: PROBE_HEADERS_MS_MAX,
    requestTimeout: PROBE_IDLE_MS_MAX,
    keepAliveTimeout: PROBE_KEPT_MS_MAX,
    connectionsCheckingInterval: PROBE_HEADERS_MS_MAX / 2,
  };
  const server = createServer(limits, (request, response) => void respond(request, response, { probes, options }));
  server.setTimeout(PROBE_IDLE_MS_MAX);
  limitProbeConnections(server);
  const listening = once(server, 'listening');
  server.listen(options.port, options.host);
  await listening;
  const { address, family, port } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    async close() {
      probes.stop();
      const closed = once(server, 'close');
      server.close();
      // Scrapers keep their connections open, and a drain must not wait for them.
      server.closeAllConnections();
      await closed;
    },
  };
}

type Context = { probes: Probes; options: ProbeOptions };

async function respond(request: IncomingMessage, response: ServerResponse, context: Context): Promise<void> {
  // Reads the whole request before it answers, so that bytes of a malformed body are not mistaken for another request. A request that is
  // cut off gets no answer.
  const hasEnded = await once(request.resume(), 'end').then(
    () => true,
    () => false,
  );
  if (!hasEnded) return;
  const { status, type, body } = await answerTo(request, context).catch(() => jsonAnswer(500, { error: 'internal' }));
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

async function answerTo(request: IncomingMessage, { probes, options }: Context): Promise<ProbeAnswer> {
  const { method = '', url = '' } = request;
  // The absolute form of a request target has an authority before its path.
  const path = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');
  if (!['GET', 'HEAD'].includes(method) || !isProbePath(path)) return jsonAnswer(404, { error: 'not found' });
  if (!options.hosts.allowsRequest(request)) return jsonAnswer(MISDIRECTED_STATUS, { error: options.hosts.refusal });
  return probes.answer(path, request.headers.accept);
}
