import { once } from 'node:events';
import { createServer, type IncomingMessage, request as requestHttp, type Server, type ServerResponse } from 'node:http';
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';

/** A load balancer before ingress replicas. Strict round robin: consecutive requests of a client reach different replicas. */
export type Balancer = {
  /** `http://host:port`, without a trailing slash. */
  url: string;
  /** `host:port`, as a card names gRPC. */
  grpcUrl: string;
  /** HTTP requests and gRPC calls of each replica. */
  readonly counts: { http: number[]; grpc: number[] };
  close(): Promise<void>;
};

export type Replica = { httpPort: number; grpcPort?: number | undefined };

const HOST = '127.0.0.1';
/** RFC 9110, section 7.6.1. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']);
const BAD_GATEWAY = 502;
/**
 * Longer than any client keeps an idle connection, in milliseconds. With Node's 5 s, a client delayed by a busy machine wrote its next
 * request into a connection that had just been closed.
 */
const KEEP_ALIVE_MS = 120_000;

export async function startBalancer(replicas: readonly Replica[]): Promise<Balancer> {
  const counts = { http: replicas.map(() => 0), grpc: replicas.map(() => 0) };
  const nextHttp = roundRobin(counts.http);
  const http = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
    forward(replicas[nextHttp()]!.httpPort, request, response),
  );
  const sessions = new Sessions(replicas.map(({ grpcPort }) => grpcPort ?? 0));
  const nextGrpc = roundRobin(counts.grpc);
  const grpc = createHttp2Server();
  grpc.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) =>
    forwardCall(sessions.get(nextGrpc()), stream, headers),
  );
  const closings = [await listen(http), await listen(grpc)] as const;
  return {
    url: `http://${HOST}:${portOf(http)}`,
    grpcUrl: `${HOST}:${portOf(grpc)}`,
    counts,
    close: async () => {
      sessions.close();
      await Promise.all(closings.map(close => close()));
    },
  };
}

function roundRobin(counts: number[]): () => number {
  let turn = -1;
  return () => {
    turn = (turn + 1) % counts.length;
    counts[turn]! += 1;
    return turn;
  };
}

const portOf = (server: Server | Http2Server) => (server.address() as AddressInfo).port;

/** Returns a function that closes the server and all its connections. */
async function listen(server: Server | Http2Server): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, HOST);
  await once(server, 'listening');
  return async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
}

/**
 * Passes each piece at once, in both directions; a close on one side closes the other. Each request has a connection of its own,
 * because a kept one may be dead when it is used again.
 */
function forward(port: number, request: IncomingMessage, response: ServerResponse): void {
  const { method = 'GET', url: path = '/' } = request;
  const upstream = requestHttp({ host: HOST, port, method, path, headers: endToEnd(request.rawHeaders), agent: false });
  upstream.once('response', answer => {
    response.writeHead(answer.statusCode!, endToEnd(answer.rawHeaders));
    // A stream's head must not wait for its first frame.
    response.flushHeaders();
    answer.pipe(response);
    answer.once('close', () => {
      if (!answer.complete) response.destroy();
    });
  });
  upstream.once('error', () => {
    if (response.headersSent) response.destroy();
    else response.writeHead(BAD_GATEWAY).end();
  });
  response.once('close', () => upstream.destroy());
  request.pipe(upstream);
}

/** Alternating names and values, as Node accepts them, because a name may occur more than once. */
function endToEnd(raw: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index < raw.length; index += 2) {
    if (!HOP_BY_HOP.has(raw[index]!.toLowerCase())) kept.push(raw[index]!, raw[index + 1]!);
  }
  return kept;
}

/** One gRPC connection to each replica, opened on first use. */
class Sessions {
  readonly #ports: readonly number[];
  readonly #open = new Map<number, ClientHttp2Session>();

  constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  get(index: number): ClientHttp2Session {
    const known = this.#open.get(index);
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const session = connect(`http://${HOST}:${this.#ports[index]}`);
    // Each stream reports the error to its client.
    session.on('error', () => {});
    this.#open.set(index, session);
    return session;
  }

  close(): void {
    for (const session of this.#open.values()) session.destroy();
  }
}

/** Balances HTTP/2 streams, not connections, because a gRPC client has one connection for all its calls. */
function forwardCall(session: ClientHttp2Session, client: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  const upstream = session.request(headers);
  let trailers: IncomingHttpHeaders = {};
  upstream.once('response', (answer, flags) => {
    if (client.destroyed) return;
    // Trailers only: an error without a message before it.
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    client.respond(answer, { endStream, waitForTrailers: !endStream });
    if (!endStream) upstream.pipe(client);
  });
  upstream.once('trailers', got => {
    trailers = got;
  });
  client.once('wantTrailers', () => client.sendTrailers(trailers));
  client.pipe(upstream);
  for (const [stream, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    stream.on('error', () => {});
    stream.once('close', () => {
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted) other.close(stream.rstCode);
    });
  }
}
