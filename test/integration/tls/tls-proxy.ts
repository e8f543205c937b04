import { request } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { listen } from '../../kit/listen.ts';

/** Terminates TLS and forwards each request to a server without TLS. */
export async function startTlsProxy(t: TestContext, to: string, options: ServerOptions): Promise<string> {
  const server = createServer(options, (incoming, outgoing) => {
    const { method, headers, url = '/' } = incoming;
    const passed = request(new URL(url, to), { ...(method && { method }), headers }, answered => {
      outgoing.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.pipe(outgoing);
    });
    incoming.pipe(passed);
  });
  await listen(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
