import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from '../../support/agents/remote-shapes.ts';
import { monotonicMs } from '../measure/clock.ts';
import { answerCalls } from '../measure/load-process.ts';
import { textOfTokens, tokenAt } from '../tokens.ts';
import { WIRES, type Wire, type WireName } from './wires.ts';

/**
 * A remote agent with nothing behind it: `node:http`, one write per token. The message names the number of tokens and, optionally, the
 * milliseconds between them, and a number by which the send times of the answers are ordered.
 */

/** Send times of the tokens of each answer since the last call, in monotonic milliseconds. An answer without pauses has only the first. */
let sentTimesMs: { order: number; times: number[] }[] = [];

async function listen({ wire: name }: { wire: WireName }): Promise<string> {
  const wire: Wire = WIRES[name];
  const server = createServer((request, response) => {
    serve(wire, request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function serve(wire: Wire, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '/', headers } = request;
  const body = Buffer.concat((await request.toArray()) as Buffer[]).toString();
  const streams = method === 'POST' && (url === wire.path || url.endsWith('/runs/stream'));
  if (streams) {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    return await stream(wire, JSON.parse(body) as Json, response);
  }
  const answer = wire.answer(url, `http://${headers.host}`);
  response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(answer ?? {}));
}

async function stream(wire: Wire, body: Json, response: ServerResponse): Promise<void> {
  const [tokens = 0, everyMs = 0, order = 0] = wire.textOf(body).split(' ').map(Number);
  const { begin, token, end } = wire.run();
  const times: number[] = [];
  sentTimesMs.push({ order, times });
  response.write(begin);
  const startMs = monotonicMs();
  for (let index = 0; index < tokens && !response.destroyed; index++) {
    if (everyMs > 0) await untilMs(startMs + index * everyMs);
    if (everyMs > 0 || index === 0) times.push(monotonicMs());
    if (!response.write(token(tokenAt(index), index, index === tokens - 1))) await writable(response);
  }
  response.end(end(textOfTokens(tokens)));
}

async function untilMs(atMs: number): Promise<void> {
  const waitMs = atMs - monotonicMs();
  if (waitMs > 0) await new Promise(resolve => setTimeout(resolve, waitMs));
}

function writable(response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}

async function sentAtMs(): Promise<number[][]> {
  const sent = sentTimesMs.sort((one, other) => one.order - other.order);
  sentTimesMs = [];
  return sent.map(({ times }) => times);
}

const methods = { listen, sentAtMs };
export type RemoteServerMethods = typeof methods;

answerCalls(methods);
