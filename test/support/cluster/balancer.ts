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

/** What stands before the replicas of a door: every request goes to the next one, so that no two of a client in turn meet the same replica. */
export type Balancer = {
  /** `http://host:port`, without a slash at its end. */
  url: string;
  /** `host:port`, as a card names gRPC. */
  grpcUrl: string;
  /** HTTP requests and gRPC calls that each replica got. */
  readonly counts: { http: number[]; grpc: number[] };
  close(): Promise<void>;
};

export type Replica = { httpPort: number; grpcPort?: number | undefined };

const HOST = '127.0.0.1';
/** Of one connection, not of a request: [RFC 9110] 7.6.1. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']);
const BAD_GATEWAY = 502;
/** Longer than any client keeps an idle connection, milliseconds: with Node's 5 s, one that a busy machine held up wrote its next request into a connection that was just closed. */
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

/** Returns what ends the server and cuts everything that is open, as the end of a test does. */
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

/** Passes each piece as it comes, both ways; whichever side goes away takes the other with it at once. A connection for each request: none that is kept can be dead when it is used again. */
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

/** Names and values in turn, as Node takes them: a name may come more than once. */
function endToEnd(raw: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index < raw.length; index += 2) {
    if (!HOP_BY_HOP.has(raw[index]!.toLowerCase())) kept.push(raw[index]!, raw[index + 1]!);
  }
  return kept;
}

/** One connection to each replica's gRPC, made when it is needed. */
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
    // Its streams tell their clients.
    session.on('error', () => {});
    this.#open.set(index, session);
    return session;
  }

  close(): void {
    for (const session of this.#open.values()) session.destroy();
  }
}

/** One call of gRPC, which is one stream of HTTP/2: a client has one connection for all its calls, so connections are not what must be dealt out. */
function forwardCall(session: ClientHttp2Session, client: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  const upstream = session.request(headers);
  let trailers: IncomingHttpHeaders = {};
  upstream.once('response', (answer, flags) => {
    if (client.destroyed) return;
    // Trailers alone: an error without a message before it.
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
