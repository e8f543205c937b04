import { A2AError, decodeSseBatches, type SseEvent } from '@hopline/a2a';
import { boundedFetch, ResponseTooLarge } from '@hopline/outbound-http';
import { GraphFault } from './graph.ts';
import type { JsonObject } from './json.ts';

/** Maximum bytes of a response that is not a stream. The state of a thread is one such response. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Time limit of a request that is not a stream. */
const ANSWER_MS_MAX = 30_000;
export const LANGGRAPH_UNREACHABLE = 'the LangGraph server cannot be reached';

/** Follows no redirects and does not retry: a run may have begun even if the connection broke. */
const FETCH = { redirectsMax: 0, freshConnections: true };
const fetchJson = boundedFetch({ ...FETCH, bytesMax: ANSWER_BYTES_MAX });
/** The events of a stream are bounded one by one, by `decodeSse`. */
const fetchStream = boundedFetch({ ...FETCH, bytesMax: ANSWER_BYTES_MAX, boundedMethods: [] });

export type ServerRequest = {
  signal: AbortSignal;
  body?: JsonObject;
  method?: string;
  headers?: Readonly<Record<string, string>>;
};

/** Sends the requests of a turn to a LangGraph server. Every failure is a GraphFault that does not quote the server. */
export class ServerClient {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.#base = url.endsWith('/') ? url.slice(0, -1) : url;
    this.#headers = headers;
  }

  /** Returns the JSON of the response; undefined for 404. */
  async json(path: string, request: ServerRequest): Promise<unknown> {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(ANSWER_MS_MAX)]);
    const response = await this.#request(fetchJson, path, { ...request, signal });
    if (response.status === 404) {
      await response.body?.cancel();
      return undefined;
    }
    const text = await response.text().catch(cause => {
      if (cause instanceof ResponseTooLarge)
        throw new GraphFault('a response of the LangGraph server is too large', false, { cause });
      throw new GraphFault(LANGGRAPH_UNREACHABLE, true, { cause });
    });
    try {
      return text === '' ? undefined : JSON.parse(text);
    } catch (cause) {
      throw new GraphFault('the LangGraph server answered with something other than JSON', false, { cause });
    }
  }

  /** Returns the events of a run, in arrays of those that arrive in one packet, and the run's location, which is needed to cancel it. */
  async stream(
    path: string,
    request: ServerRequest,
  ): Promise<{ location: string | undefined; events: AsyncIterable<SseEvent[]> }> {
    const response = await this.#request(fetchStream, path, request);
    if (response.body === null || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
      await response.body?.cancel();
      throw new GraphFault('the LangGraph server answered with something other than an event stream');
    }
    const location = response.headers.get('content-location') ?? undefined;
    return { location, events: eventsOf(response.body, request.signal) };
  }

  /** Returns the status of the response, even an error. */
  async status(path: string, request: ServerRequest): Promise<number> {
    const response = await this.#send(fetchJson, path, request);
    await response.body?.cancel();
    return response.status;
  }

  async #send(
    send: typeof fetchJson,
    path: string,
    { signal, body, method = 'POST', headers }: ServerRequest,
  ): Promise<Response> {
    const json = body && { 'content-type': 'application/json' };
    const init = {
      method,
      signal,
      headers: { ...this.#headers, ...headers, ...json },
      ...(body && { body: JSON.stringify(body) }),
    };
    return await send(`${this.#base}${path}`, init).catch(cause => {
      throw new GraphFault(LANGGRAPH_UNREACHABLE, true, { cause });
    });
  }

  async #request(send: typeof fetchJson, path: string, request: ServerRequest): Promise<Response> {
    const response = await this.#send(send, path, request);
    if (response.ok || response.status === 404) return response;
    await response.body?.cancel();
    const { status } = response;
    throw new GraphFault(
      `the LangGraph server answered with status ${status}`,
      status >= 500 || status === 429 || status === 409,
    );
  }
}

async function* eventsOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<SseEvent[]> {
  try {
    yield* decodeSseBatches(body as unknown as AsyncIterable<Uint8Array>);
  } catch (cause) {
    if (signal.aborted) throw cause;
    if (cause instanceof A2AError) throw new GraphFault('an event of the LangGraph server is too large', false, { cause });
    throw new GraphFault('the stream of the LangGraph server broke', true, { cause });
  }
}
