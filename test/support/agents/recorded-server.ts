import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as it was made of a real LangGraph server, and what that answered. */
type Exchange = {
  method: string;
  path: string;
  body?: unknown;
  status: number;
  headers: Record<string, string>;
  text: string;
  /** The client cut the answer before its end. */
  cut?: true;
};

export type RecordedServer = {
  url: string;
  /** Requests that were made, in order. */
  readonly asked: readonly { method: string; path: string; body: unknown; traceparent: string | undefined }[];
  close(): Promise<void>;
};

const KEPT_HEADERS = ['content-type', 'content-location'];

/**
 * A LangGraph server: the real one at `real`, whose exchanges are noted, or without it the recording, which answers each request with what the real server answered to the same one, body included.
 * A request that was never recorded is answered with 418, so that a test that asks for something else fails.
 */
export async function startRecordedServer(recording: URL, real?: { url: string; record: boolean }): Promise<RecordedServer> {
  const asked: RecordedServer['asked'][number][] = [];
  const exchanges: Exchange[] = real === undefined ? JSON.parse(readFileSync(recording, 'utf8')) : [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const { method = '', url: path = '', headers } = request;
    asked.push({ method, path, body, traceparent: headers.traceparent as string | undefined });
    if (real === undefined) replay(exchanges, { method, path, body }, response);
    else await pass(real.url, { method, path, body }, response, exchanges);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: async () => {
      if (real?.record) writeFileSync(recording, `${JSON.stringify(exchanges, undefined, 2)}\n`);
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

type Asked = Pick<Exchange, 'method' | 'path' | 'body'>;

function replay(exchanges: Exchange[], asked: Asked, response: ServerResponse): void {
  const wanted = JSON.stringify([asked.method, asked.path, asked.body ?? null]);
  const index = exchanges.findIndex(({ method, path, body }) => JSON.stringify([method, path, body ?? null]) === wanted);
  const [found] = index < 0 ? [] : exchanges.splice(index, 1);
  response.writeHead(found?.status ?? 418, found?.headers ?? {});
  // In pieces that end anywhere, as a network cuts them.
  for (const piece of (found?.text ?? '').match(/[\s\S]{1,97}/g) ?? []) response.write(piece);
  if (found?.cut !== true) response.end();
}

async function pass(real: string, { method, path, body }: Asked, response: ServerResponse, exchanges: Exchange[]): Promise<void> {
  const cut = new AbortController();
  response.on('close', () => cut.abort());
  const json = body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const answer = await fetch(`${real}${path}`, { method, signal: cut.signal, ...json });
  const headers = Object.fromEntries(
    KEPT_HEADERS.flatMap(name => (answer.headers.has(name) ? [[name, answer.headers.get(name)!]] : [])),
  );
  const exchange: Exchange = { method, path, ...(body !== undefined && { body }), status: answer.status, headers, text: '' };
  exchanges.push(exchange);
  response.writeHead(answer.status, headers);
  const decoder = new TextDecoder();
  try {
    for await (const chunk of answer.body ?? []) {
      exchange.text += decoder.decode(chunk as Uint8Array, { stream: true });
      response.write(chunk);
    }
  } catch {
    exchange.cut = true;
  }
  exchange.text = small(exchange.text);
  response.end();
}

/** Leaves out what a turn never reads: most of each event is about the server. */
function small(text: string): string {
  const left =
    /"(?!(?:langgraph_node|langgraph_checkpoint_ns)")(?:ls_|lc_|langgraph_|created_by|graph_id|checkpoint_ns|user_id|run_attempt|run_id)\w*":(?:"[^"]*"|\d+|\[[^\]]*\]|\{[^}]*\}),?/g;
  return text
    .replace(left, '')
    .replaceAll(',}', '}')
    .replace(/"(?:additional_kwargs|response_metadata)":\{\},/g, '');
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text === '' ? undefined : JSON.parse(text);
}
