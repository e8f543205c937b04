import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { listen } from '../../kit/listen.ts';
import { until } from '../../kit/until.ts';

/** One received notification, and the status of its response. */
export type Notification = {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert the body
  body: any;
  status: number;
  atMs: number;
};

/** `after`: the response waits until this resolves. */
export type WebhookAnswer = { status?: number; headers?: Record<string, string>; afterMs?: number; after?: Promise<unknown> };

export interface Webhook extends AsyncDisposable {
  readonly url: string;
  readonly notifications: Notification[];
  /** Notifications with a 2xx response. */
  accepted(path?: string): Notification[];
  /** Waits until `condition` is true. */
  until(condition: () => boolean, msMax?: number): Promise<void>;
}

/** A webhook on 127.0.0.1, on https with `tls`. `answer` chooses the response to the n-th notification (from 1) of a path; default 200. */
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
    const { status = 200, headers = {}, afterMs = 0, after } = answer(n, path);
    notifications.push({ path, headers: request.headers, text, body: JSON.parse(text), status, atMs: performance.now() });
    if (afterMs > 0) await new Promise(resolve => setTimeout(resolve, afterMs));
    await after;
    response.writeHead(status, headers).end();
    open.delete(response);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await listen(server);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    notifications,
    accepted: path => notifications.filter(one => one.status < 300 && (path === undefined || one.path === path)),
    until: async (condition, msMax) => {
      await until(condition, () => `${condition}, after ${notifications.length} notifications`, msMax);
    },
    [Symbol.asyncDispose]: async () => {
      for (const response of open) response.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}

export const generationOf = ({ headers }: Notification): number => Number(String(headers['x-hopline-cursor']).split('.')[0]);
/** The generation after which the body of a notification begins. */
export const afterOf = ({ headers }: Notification): number => Number(String(headers['x-hopline-after']).split('.')[0]);

/**
 * Drops notifications whose cursor is not after the last accepted one, as a receiver should. `repeats` counts them; throws when one
 * differs from the accepted notification of the same cursor.
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
