import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer, type TlsOptions, type Server as TlsServer } from 'node:tls';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { A2AServer } from '@hopline/a2a-server';
import { answerStreaming, answerUnary, type GrpcHosts } from './answer-call.ts';
import { callBounds } from './call-bounds.ts';
import { GRPC_LIMITS, type GrpcLimits } from './limits.ts';
import { PROCEDURES } from './services.ts';

/** Certificate and key, reloaded when they change. */
export type GrpcTls = { readonly options: TlsOptions; keepFresh(server: TlsServer): void };

export type A2AGrpcOptions = {
  /** The response to GetAgentCard of 0.3. */
  card: () => object | Promise<object>;
  /** Values that replace those of GRPC_LIMITS. */
  limits?: Partial<GrpcLimits>;
  /** Absent: no TLS, because the server listens on loopback or behind a proxy that terminates it. */
  tls?: GrpcTls | undefined;
  /** Names of the server, for a server without authentication. Absent: callers authenticate. */
  hosts?: GrpcHosts | undefined;
};

export type GrpcServer = {
  /** Resolves with the port; 0 takes a free one. Rejects when it cannot listen. */
  listen(host: string, port: number): Promise<number>;
  /** Drains the server, sends GOAWAY, and cuts calls and connections that are still open after `closeMsMax`. */
  close(): Promise<void>;
};

/** The unit of `maxSessionMemory` in Node. */
const BYTES_OF_MEGABYTE = 1_000_000;

const unchanged = (bytes: Buffer): Buffer => bytes;

/** Serves both gRPC services of an A2A server on one port. */
export function openGrpc(server: A2AServer, options: A2AGrpcOptions): GrpcServer {
  const limits = { ...GRPC_LIMITS, ...options.limits };
  const grpc = new Server({
    interceptors: [
      callBounds({
        requestMsMax: server.limits.requestMsMax,
        stallMsMax: server.limits.viewerStallMsMax,
        connectionBytesMax: limits.connectionMegabytesMax * BYTES_OF_MEGABYTE,
      }),
    ],
    'grpc.max_receive_message_length': server.limits.bodyBytesMax,
    'grpc.max_concurrent_streams': limits.callsPerConnectionMax,
    'grpc-node.max_session_memory': limits.connectionMegabytesMax,
    'grpc.keepalive_time_ms': server.limits.heartbeatMs,
    'grpc.keepalive_timeout_ms': limits.pingMsMax,
    'grpc.max_connection_idle_ms': limits.idleConnectionMs,
    'grpc.enable_channelz': 0,
  });
  for (const procedure of PROCEDURES) {
    const { path, streams } = procedure;
    const answer = streams ? answerStreaming(server, procedure, options) : answerUnary(server, procedure, options);
    grpc.register(path, answer, unchanged, unchanged, 'serverStream');
  }
  const listener = createListener(grpc, options.tls, limits.closeMsMax);
  listener.maxConnections = server.limits.connectionsMax;
  const open = new Set<Socket>();
  listener.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return {
    listen: (host, port) => {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      listener.once('error', reject);
      listener.listen({ host, port }, () => resolve((listener.address() as AddressInfo).port));
      return promise;
    },
    close: async () => {
      server.drain();
      const ended = new Promise<void>(resolve => {
        listener.close(() => resolve());
      });
      // With Node 26, tryShutdown does not wait for connections and forceShutdown does not see them. This call only sends GOAWAY.
      grpc.tryShutdown(() => {});
      await Promise.race([ended, sleep(limits.closeMsMax, undefined, { ref: false })]);
      for (const socket of open) socket.destroy();
      await ended;
      grpc.forceShutdown();
    },
  };
}

/** The library's own listener can neither bound connections nor replace its certificate. */
function createListener(grpc: Server, tls: GrpcTls | undefined, closeMsMax: number): NetServer {
  // Insecure credentials: TLS is already terminated.
  const { injectConnection } = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const accept = (socket: Socket) => {
    injectConnection(socket);
    // The server has sent everything. A client that does not close its end would otherwise hold its slot indefinitely.
    socket.once('finish', () => {
      const late = setTimeout(() => socket.destroy(), closeMsMax).unref();
      socket.once('close', () => clearTimeout(late));
    });
  };
  if (tls === undefined) return createServer(accept);
  const listener = createTlsServer({ ...tls.options, ALPNProtocols: ['h2'] }, accept);
  tls.keepFresh(listener);
  return listener;
}
