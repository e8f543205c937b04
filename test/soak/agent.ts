import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { monotonicMs } from '../bench/measure/clock.ts';
import { WIRES } from '../bench/remote-server/wires.ts';
import type { Json } from '../support/agents/remote-shapes.ts';
import { timedToken } from './timed-token.ts';

/**
 * An A2A 0.3 agent in a process of its own. The message names the number of tokens and the milliseconds between them. A token has its number
 * and the time at which it was sent, so this process keeps nothing of an answer.
 */
const wire = WIRES['a2a-0.3'];

async function answer(text: string, write: (frame: string) => boolean): Promise<void> {
  const [tokens = 0, everyMs = 0] = text.split(' ').map(Number);
  const { begin, token, end } = wire.run();
  let isOpen = write(begin);
  const startMs = monotonicMs();
  for (let index = 0; index < tokens && isOpen; index += 1) {
    // Measured from the start, not from the previous token, so that a late timer does not slow the stream down.
    await delay(Math.max(0, startMs + index * everyMs - monotonicMs()));
    isOpen = write(token(timedToken(index, monotonicMs()), index, index === tokens - 1));
  }
  if (isOpen) write(end(''));
}

const METHOD_NOT_FOUND = { code: -32601, message: 'method not found' };

createServer((request, response) => {
  const { method, url = '/', headers } = request;
  const json = (status: number, value: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  if (method !== 'POST') {
    const found = wire.answer(url, `http://${headers.host}`) as object | undefined;
    json(found === undefined ? 404 : 200, found ?? {});
    return;
  }
  void request.toArray().then(async chunks => {
    const body = JSON.parse(Buffer.concat(chunks as Buffer[]).toString()) as Json;
    if (body.method !== 'message/stream') return json(200, { jsonrpc: '2.0', id: body.id, error: METHOD_NOT_FOUND });
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    await answer(wire.textOf(body), frame => {
      response.write(frame);
      return !response.destroyed;
    });
    response.end();
  });
}).listen(Number(process.env.HOPLINE_PORT), '127.0.0.1');
