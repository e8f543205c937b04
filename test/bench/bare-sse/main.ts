import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { monotonicMs } from '../measure/clock.ts';
import { answerCalls } from '../measure/load-process.ts';
import { stampedToken } from '../tokens.ts';

/** The minimum between a writer and its viewers: a single process without log, protocol or storage. */

const viewers = new Set<ServerResponse>();

async function listen(): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    response.write('data: hello\n\n');
    viewers.add(response);
    response.on('close', () => viewers.delete(response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
}

async function stamp({ count, everyMs, chars }: { count: number; everyMs: number; chars: number }): Promise<void> {
  const startMs = monotonicMs();
  for (let index = 0; index < count; index++) {
    await new Promise(resolve => setTimeout(resolve, Math.max(0, startMs + (index + 1) * everyMs - monotonicMs())));
    const frame = `id: ${index + 1}\ndata: ${stampedToken(monotonicMs(), chars)}\n\n`;
    for (const viewer of viewers) viewer.write(frame);
  }
}

/** Heap after a collection; needs `--expose-gc`. */
async function heapBytes(): Promise<number> {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const methods = { listen, stamp, heapBytes };
export type BareSseMethods = typeof methods;

answerCalls(methods);
