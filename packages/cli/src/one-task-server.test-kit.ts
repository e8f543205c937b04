import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Message, StreamResponse } from '@hopline/a2a';
import { listen } from '../../../test/kit/listen.ts';

type ReceivedRequest = { method: string; params: { id?: string; message?: Message }; headers: IncomingHttpHeaders };

/** The response to a request: a JSON-RPC result or error, events of a stream that then ends or stays open, or a page. */
export type Reply =
  | { result: unknown }
  | { error: { code: number; message: string } }
  | { events: readonly StreamResponse[]; open?: boolean }
  | { page: string };

/** A server with one fixed reply per method. */
export async function startServer(replies: Record<string, Reply>) {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const { method, params } = body === '' ? { method: `GET ${request.url}`, params: {} } : JSON.parse(body);
    requests.push({ method, params, headers: request.headers });
    const reply = replies[method];
    if (reply === undefined) return void response.writeHead(404).end();
    if (!('events' in reply)) {
      const sent = 'page' in reply ? reply.page : JSON.stringify({ jsonrpc: '2.0', id: 1, ...reply });
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(sent);
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const [index, result] of reply.events.entries()) {
      response.write(`id: ${index + 1}.${index + 11}\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`);
    }
    if (!reply.open) response.end();
  });
  const origin = await listen(server);
  return {
    url: `${origin}/`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
