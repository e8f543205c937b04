import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/**
 * Longer than a test lasts. Node closes connections that are idle for 5 s, and `fetch` may send the next request just then: on a slow machine the
 * pause between two requests of a test is that long.
 */
const IDLE_MS_MAX = 10 * 60_000;

/** Starts to listen on a free port of the loopback address. Resolves with the origin of a server for HTTP. */
export async function listen(server: Server): Promise<string> {
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = IDLE_MS_MAX;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
