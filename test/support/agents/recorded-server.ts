import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../../kit/listen.ts';

/** One request to a real LangGraph server, and its response. */
type Exchange = {
  method: string;
  path: string;
  body?: unknown;
  status: number;
  headers: Record<string, string>;
  text: string;
  /** The client closed the connection before the response ended. */
  cut?: true;
};

export type RecordedServer = {
  url: string;
  /** All requests, in order. */
  readonly requests: readonly { method: string; path: string; body: unknown; traceparent: string | undefined }[];
  close(): Promise<void>;
};

const KEPT_HEADERS = ['content-type', 'content-location'];

/**
 * With `real`, a proxy before a LangGraph server that records each exchange; without it, a replay of the recording. A replayed
 * request must equal a recorded one, body included; any other gets 418, which fails the test.
 */
export async function startRecordedServer(recording: URL, real?: { url: string; record: boolean }): Promise<RecordedServer> {
  const requests: RecordedServer['requests'][number][] = [];
  const exchanges: Exchange[] = real === undefined ? JSON.parse(readFileSync(recording, 'utf8')) : [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const { method = '', url: path = '', headers } = request;
    requests.push({ method, path, body, traceparent: headers.traceparent as string | undefined });
    if (real === undefined) replay(exchanges, { method, path, body }, response);
    else await pass(real.url, { method, path, body }, response, exchanges);
  });
  const origin = await listen(server);
  return {
    url: origin,
    requests,
    close: async () => {
      if (real?.record) writeFileSync(recording, `${JSON.stringify(exchanges, undefined, 2)}\n`);
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

type RecordedRequest = Pick<Exchange, 'method' | 'path' | 'body'>;

function replay(exchanges: Exchange[], request: RecordedRequest, response: ServerResponse): void {
  const wanted = JSON.stringify([request.method, request.path, request.body ?? null]);
  const index = exchanges.findIndex(({ method, path, body }) => JSON.stringify([method, path, body ?? null]) === wanted);
  const [found] = index < 0 ? [] : exchanges.splice(index, 1);
  response.writeHead(found?.status ?? 418, found?.headers ?? {});
  // Pieces may end at any byte, as on a network.
  for (const piece of (found?.text ?? '').match(/[\s\S]{1,97}/g) ?? []) response.write(piece);
  if (found?.cut !== true) response.end();
}

async function pass(
  real: string,
  { method, path, body }: RecordedRequest,
  response: ServerResponse,
  exchanges: Exchange[],
): Promise<void> {
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

/** Removes members that a turn never reads: most of each event describes the server. */
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
