import {
  A2AError,
  type A2AErrorCode,
  DIALECTS,
  type Dialect,
  isObject,
  type JsonObject,
  type Operation,
  SSE_CONTENT_TYPE,
  VERSION_HEADER,
} from '@hopline/a2a';
import { FailedTry } from './failed-try.ts';
import { parseJson } from './parse-json.ts';
import { textOf } from './read-body.ts';
import { errorOf } from './rpc-error.ts';

export type TransportOptions = {
  url: string;
  dialect: '1.0' | '0.3';
  headers: Readonly<Record<string, string>>;
  fetch: typeof fetch;
};

export type RequestOptions = {
  signal: AbortSignal | undefined;
  /** The head of the answer comes within; milliseconds. */
  headMsMax: number;
};

/** Single requests to one server. What fails is a FailedTry; nothing is tried twice here. */
export class Transport {
  readonly url: URL;
  readonly dialect: Dialect;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;

  /** Throws TypeError for a URL that is none of HTTP and for headers that no request can have. */
  constructor({ url, dialect, headers, fetch }: TransportOptions) {
    this.url = new URL(url);
    if (!/^https?:$/.test(this.url.protocol)) throw new TypeError('the URL of a server begins with http: or https:');
    this.dialect = DIALECTS[dialect];
    this.#headers = Object.fromEntries(new Headers(headers));
    this.#fetch = fetch;
  }

  /** Asks for an operation. Resolves with the head of an answer with a status of success. */
  async post(
    operation: Operation,
    params: JsonObject,
    options: RequestOptions & { cursor?: string | undefined },
  ): Promise<Response> {
    const streams = operation === 'stream' || operation === 'subscribe';
    const headers = {
      ...this.#headers,
      'content-type': 'application/json',
      accept: streams ? `${SSE_CONTENT_TYPE}, application/json` : 'application/json',
      [VERSION_HEADER]: this.dialect.name,
      ...(options.cursor !== undefined && { 'last-event-id': options.cursor }),
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: this.dialect.methods[operation], params });
    return this.#request(this.url, { method: 'POST', headers, body }, options);
  }

  /** Reads a document. */
  async get(url: URL, options: RequestOptions): Promise<Response> {
    return this.#request(url, { headers: { ...this.#headers, accept: 'application/json' } }, options);
  }

  async #request(url: URL, init: RequestInit, { signal, headMsMax }: RequestOptions): Promise<Response> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), headMsMax);
    const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
    try {
      // A redirect would carry the caller's headers, and the message, to wherever the server says.
      const response = await this.#fetch(url, { ...init, redirect: 'error', cache: 'no-store', signal: either });
      if (response.ok) return response;
      throw await refusalOf(response, headMsMax);
    } catch (thrown) {
      if (thrown instanceof FailedTry) throw thrown;
      const detail = late.signal.aborted ? `the server did not answer within ${headMsMax} ms` : 'the server cannot be reached';
      throw new FailedTry(new A2AError('UNAVAILABLE', { detail, cause: thrown }), { reached: false });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The `result` of a whole answer. Throws FailedTry with the error that stands in its place. */
export async function resultOf(response: Response, silenceMsMax: number): Promise<unknown> {
  const answer = parseJson(await textOf(response, silenceMsMax));
  if (isObject(answer) && isObject(answer.error)) throw new FailedTry(errorOf(answer.error));
  if (isObject(answer) && 'result' in answer) return answer.result;
  throw noA2A('the answer is no JSON-RPC response');
}

export function noA2A(detail: string): FailedTry {
  return new FailedTry(new A2AError('INVALID_AGENT_RESPONSE', { detail, retryable: false }));
}

/** Bytes of a refusal that are read: an error, not a page. */
const REFUSAL_BYTES_MAX = 64 * 1024;
/** Too early, too many, too slow: to be asked again, as all that is the server's fault. */
const RETRYABLE_STATUSES = [408, 425, 429];

/** What a proxy in front of the server refuses has its status alone. */
const CODES_OF_STATUSES: Readonly<Record<number, A2AErrorCode>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  413: 'REQUEST_TOO_LARGE',
};

async function refusalOf(response: Response, silenceMsMax: number): Promise<FailedTry> {
  const { status } = response;
  const retryable = status >= 500 || RETRYABLE_STATUSES.includes(status);
  const askedMs = retryAfterMs(response.headers.get('retry-after'));
  const answer = parseJson(await textOf(response, silenceMsMax, REFUSAL_BYTES_MAX).catch(() => ''));
  if (isObject(answer) && isObject(answer.error)) return new FailedTry(errorOf(answer.error, retryable), { askedMs });
  const code = retryable ? 'UNAVAILABLE' : (CODES_OF_STATUSES[status] ?? 'INVALID_AGENT_RESPONSE');
  return new FailedTry(new A2AError(code, { detail: `the server answered with HTTP ${status}`, retryable }), { askedMs });
}

/** Seconds, or a date (RFC 9110 10.2.3). */
function retryAfterMs(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
