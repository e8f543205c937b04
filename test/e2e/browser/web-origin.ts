import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listen } from '../../kit/listen.ts';

type Document = { type: string; body: string | Uint8Array; policy?: string };

/** A server of static documents with its own origin. */
export type WebOrigin = AsyncDisposable & { origin: string; documents: Map<string, Document> };

export async function startWebOrigin(): Promise<WebOrigin> {
  const documents = new Map<string, Document>();
  const server = createServer((request, response) => {
    const found = documents.get(request.url ?? '');
    if (found === undefined) return response.writeHead(404).end();
    const policy = found.policy === undefined ? {} : { 'content-security-policy': found.policy };
    response.writeHead(200, { 'content-type': found.type, ...policy }).end(found.body);
  });
  await listen(server);
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    documents,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}
