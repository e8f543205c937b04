import { A2AError, decodeSse, type SseEvent } from '@hopline/a2a';
import { GraphFault } from './graph.ts';
import type { JsonObject } from './json.ts';

/** Bytes of an answer that is no stream. A thread's state comes whole. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** A request that is no stream must be answered within, milliseconds. */
const ANSWER_MS_MAX = 30_000;
export const UNREACHABLE = 'the LangGraph server cannot be reached';

export type ServerRequest = {
  signal: AbortSignal;
  body?: JsonObject;
  method?: string;
  headers?: Readonly<Record<string, string>>;
};

/** The requests of a LangGraph server that a turn needs. Every fault is a GraphFault; none quotes the server. */
export class ServerClient {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.#base = url.endsWith('/') ? url.slice(0, -1) : url;
    this.#headers = headers;
  }

  /** The JSON of the answer; undefined for 404. */
  async json(path: string, request: ServerRequest): Promise<unknown> {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(ANSWER_MS_MAX)]);
    const response = await this.#fetch(path, { ...request, signal });
    if (response.status === 404) {
      await response.body?.cancel();
      return undefined;
    }
    const text = await readText(response).catch(error => {
      throw error instanceof GraphFault ? error : new GraphFault(UNREACHABLE, true, { cause: error });
    });
    try {
      return text === '' ? undefined : JSON.parse(text);
    } catch (cause) {
      throw new GraphFault('the LangGraph server answered with no JSON', false, { cause });
    }
  }

  /** Where the run is, for cancelling it, and its events. */
  async stream(path: string, request: ServerRequest): Promise<{ location: string | undefined; events: AsyncIterable<SseEvent> }> {
    const response = await this.#fetch(path, request);
    if (response.body === null || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
      await response.body?.cancel();
      throw new GraphFault('the LangGraph server answered with no stream');
    }
    const location = response.headers.get('content-location') ?? undefined;
    return { location, events: eventsOf(response.body, request.signal) };
  }

  async #fetch(path: string, { signal, body, method = 'POST', headers }: ServerRequest): Promise<Response> {
    const json = body && { 'content-type': 'application/json' };
    const init = {
      method,
      signal,
      // A credential must not follow to where the server points: `fetch` leaves out Authorization there, and no other header.
      redirect: 'manual' as const,
      // A kept connection may be closed by the server as it is used again: then nobody knows whether the run has begun.
      headers: { ...this.#headers, ...headers, ...json, connection: 'close' },
      ...(body && { body: JSON.stringify(body) }),
    };
    const response = await fetch(`${this.#base}${path}`, init).catch(cause => {
      throw new GraphFault(UNREACHABLE, true, { cause });
    });
    if (response.ok || response.status === 404) return response;
    await response.body?.cancel();
    const { status } = response;
    throw new GraphFault(
      `the LangGraph server answered with status ${status}`,
      status >= 500 || status === 429 || status === 409,
    );
  }
}

async function* eventsOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<SseEvent> {
  try {
    yield* decodeSse(body as unknown as AsyncIterable<Uint8Array>);
  } catch (cause) {
    if (signal.aborted) throw cause;
    if (cause instanceof A2AError) throw new GraphFault('an event of the LangGraph server is too large', false, { cause });
    throw new GraphFault('the stream of the LangGraph server broke', true, { cause });
  }
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > ANSWER_BYTES_MAX) throw new GraphFault('an answer of the LangGraph server is too large');
  }
  return text;
}
