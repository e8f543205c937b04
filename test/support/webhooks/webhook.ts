import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';

/** One notification as it came, with the status it was answered with. */
export type Notification = {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: the body is what is tested
  body: any;
  status: number;
  atMs: number;
};

export type WebhookAnswer = { status?: number; headers?: Record<string, string>; afterMs?: number };

export interface Webhook extends AsyncDisposable {
  readonly url: string;
  readonly notifications: Notification[];
  /** Notifications that were answered with a 2xx. */
  taken(path?: string): Notification[];
  /** Resolves when `fine` says so of what has come. */
  until(fine: () => boolean, timeoutMs?: number): Promise<void>;
}

/** A webhook on 127.0.0.1, on https with `tls`. `answer` says how the n-th notification (from 1) of a path is answered; 200 without it. */
export async function startWebhook(
  answer: (n: number, path: string) => WebhookAnswer = () => ({}),
  tls?: ServerOptions,
): Promise<Webhook> {
  const notifications: Notification[] = [];
  const open = new Set<ServerResponse>();
  const counts = new Map<string, number>();
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    open.add(response);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const path = request.url ?? '/';
    const n = (counts.get(path) ?? 0) + 1;
    counts.set(path, n);
    const { status = 200, headers = {}, afterMs = 0 } = answer(n, path);
    notifications.push({ path, headers: request.headers, text, body: JSON.parse(text), status, atMs: performance.now() });
    if (afterMs > 0) await new Promise(resolve => setTimeout(resolve, afterMs));
    response.writeHead(status, headers).end();
    open.delete(response);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    notifications,
    taken: path => notifications.filter(one => one.status < 300 && (path === undefined || one.path === path)),
    until: async (fine, timeoutMs = 30_000) => {
      const end = performance.now() + timeoutMs;
      while (!fine()) {
        if (performance.now() > end) throw new Error(`not reached with ${notifications.length} notifications`);
        await new Promise(resolve => setTimeout(resolve, 10));
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const response of open) response.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}

export const generationOf = ({ headers }: Notification): number => Number(String(headers['x-hopline-cursor']).split('.')[0]);

/**
 * What a receiver keeps that drops whatever is not after the last cursor it took. `repeats` is what it dropped; throws when one of them is not word for word what was
 * told under that cursor before.
 */
export function received(list: readonly Notification[]): { kept: Notification[]; repeats: number } {
  const kept: Notification[] = [];
  let repeats = 0;
  for (const one of list) {
    if (generationOf(one) > (kept.length === 0 ? 0 : generationOf(kept.at(-1)!))) {
      kept.push(one);
      continue;
    }
    repeats += 1;
    const before = kept.find(other => generationOf(other) === generationOf(one));
    if (before?.text !== one.text) throw new Error(`cursor ${one.headers['x-hopline-cursor']} came twice with different bodies`);
  }
  return { kept, repeats };
}
