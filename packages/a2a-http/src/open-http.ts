import type { Server as HttpsServer, ServerOptions } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { A2AServer } from '@hopline/a2a-server';
import fastify, { type FastifyInstance } from 'fastify';
import { Cors, type CorsOptions } from './cors.ts';
import { type A2AHttpOptions, registerA2A } from './register-a2a.ts';
import type { RequestGuardOptions } from './request-guard.ts';
import { serverOptions } from './server-options.ts';

/**
 * Connections that the system accepts while this process is busy. When thousands of clients come back at once, those beyond Node's 511 would try again
 * only after one and three seconds. Linux allows 4,096 by default (`net.core.somaxconn`).
 */
const BACKLOG = 4_096;

/** Interval between two looks whether all connections have ended. */
const CONNECTIONS_CHECK_MS = 50;

/** Certificate and key, reloaded when they change. */
export type HttpTls = { readonly options: ServerOptions; keepFresh(server: HttpsServer): void };

export type OpenHttpOptions = Omit<A2AHttpOptions, 'cors' | 'guard'> & {
  /** Public address. Absent: the address that the server listens on. */
  publicUrl?: string | undefined;
  /** Absent: plain HTTP. */
  tls?: HttpTls | undefined;
  /** Absent: pages of other origins cannot read responses. */
  cors?: CorsOptions | undefined;
  /** Host names of a server without authentication. Absent: callers authenticate. */
  hosts?: RequestGuardOptions['hosts'] | undefined;
  /**
   * How long `close` still answers requests on open connections, in milliseconds. Each response states that it is the last one on its
   * connection. A client whose connection is closed just as it sends a request cannot know whether the request was received, and must not
   * send a message again. Absent: no time.
   */
  lastRequestsMs?: number | undefined;
};

export type A2AHttpServer = {
  /** Called before the server listens, to add a service's own routes such as its probes. */
  readonly app: FastifyInstance;
  /** Address of the server in its card; '' until the server has one. */
  readonly url: string;
  /** Resolves with the address it listens on. */
  listen(host: string, port: number): Promise<string>;
  /** Drains the server: streams ask their clients to reconnect, and end. */
  close(): Promise<void>;
};

/** Serves the HTTP bindings of an A2A server on a port of their own. */
export function openHttp(
  server: A2AServer,
  { publicUrl, tls, hosts, lastRequestsMs = 0, ...options }: OpenHttpOptions,
): A2AHttpServer {
  const cors = options.cors && new Cors(options.cors);
  const app = fastify(serverOptions(server.limits, tls?.options, cors));
  tls?.keepFresh(app.server);
  const guard = hosts && { hosts, origins: options.cors?.origins ?? [], publicUrl };
  const { endConnections } = registerA2A(app, server, { ...options, cors, guard });
  const answerLastRequests = async () => {
    endConnections();
    const connections = promisify(app.server.getConnections.bind(app.server));
    const deadline = performance.now() + lastRequestsMs;
    while (performance.now() < deadline && (await connections()) > 0) await sleep(CONNECTIONS_CHECK_MS);
  };
  let url = publicUrl ?? '';
  return {
    app,
    get url() {
      return url;
    },
    listen: async (host, port) => {
      const address = await app.listen({ host, port, backlog: BACKLOG });
      url = publicUrl ?? reachable(address);
      return address;
    },
    close: async () => {
      await answerLastRequests();
      await app.close();
    },
  };
}

/** Clients cannot connect to an unspecified address, such as 0.0.0.0. */
function reachable(address: string): string {
  const url = new URL(address);
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1';
  return url.href;
}
