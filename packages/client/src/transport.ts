import {
  A2AError,
  type A2AErrorCode,
  CLIENT_DIALECTS,
  type ClientDialect,
  isObject,
  type JsonObject,
  type Operation,
  parseRetryAfter,
  SSE_CONTENT_TYPE,
  VERSION_HEADER,
} from '@hopline/a2a/client';
import { FailedTry } from './failed-try.ts';
import { TIMER_MS_MAX } from './limits.ts';
import { parseJson } from './parse-json.ts';
import { type BodyOptions, bodyText } from './read-body.ts';
import { type ErrorHeaders, errorOf } from './rpc-error.ts';

export type RequestHeaders = Readonly<Record<string, string>>;

/** `refused`: the UNAUTHENTICATED error of the server for the headers that the function returned before. */
export type HeadersFunction = (refused?: A2AError) => RequestHeaders | Promise<RequestHeaders>;

type TransportOptions = {
  url: string;
  dialect: '1.0' | '0.3';
  headers: RequestHeaders | HeadersFunction;
  fetch: typeof fetch;
};

export type RequestOptions = {
  /** The response is a stream. */
  streams?: boolean;
  signal: AbortSignal | undefined;
  /** Bound until the response headers arrive. */
  headMsMax: number;
  traceparent?: string | undefined;
  /** The server has answered this call before, so an answer that is not of A2A comes from a proxy, and the next one may not. */
  hasAnswered?: boolean;
};

/** Connections of a browser to one server over HTTP/1.1, over all its tabs. */
const CONNECTIONS_MAX = 6;

/** Single requests to one server, without retries. Failures are FailedTry. */
export class Transport {
  readonly url: URL;
  readonly dialect: ClientDialect;
  /** Streams that are open, or that wait for a connection. */
  streams = 0;
  readonly #headers: TransportOptions['headers'];
  readonly #fetch: typeof fetch;

  /** Throws TypeError for a URL that is not HTTP and for invalid headers. */
  constructor({ url, dialect, headers, fetch }: TransportOptions) {
    this.url = new URL(url);
    if (!/^https?:$/.test(this.url.protocol)) throw new TypeError('the URL of a server must begin with http: or https:');
    this.dialect = CLIENT_DIALECTS[dialect];
    this.#headers = typeof headers === 'function' ? headers : Object.fromEntries(new Headers(headers));
    this.#fetch = fetch;
  }

  /** Requests an operation. Resolves with a successful response whose body is not read yet. */
  async post(
    operation: Operation,
    params: JsonObject,
    options: RequestOptions & { cursor?: string | undefined },
  ): Promise<Response> {
    const streams = operation === 'stream' || operation === 'subscribe';
    const headers = {
      'content-type': 'application/json',
      accept: streams ? `${SSE_CONTENT_TYPE}, application/json` : 'application/json',
      [VERSION_HEADER]: this.dialect.name,
      ...(options.cursor !== undefined && { 'last-event-id': options.cursor }),
      ...(options.traceparent !== undefined && { traceparent: options.traceparent }),
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: this.dialect.methods[operation], params });
    return this.#request(this.url, { method: 'POST', headers, body }, { ...options, streams });
  }

  async get(url: URL, options: RequestOptions): Promise<Response> {
    return this.#request(url, { headers: { accept: 'application/json' } }, options);
  }

  async #request(url: URL, init: RequestInit & { headers: RequestHeaders }, options: RequestOptions): Promise<Response> {
    const { signal, headMsMax, streams = false, hasAnswered = false } = options;
    signal?.throwIfAborted();
    let isLate = false;
    const ended = new AbortController();
    const timer = setTimeout(
      () => {
        isLate = true;
        ended.abort();
      },
      Math.min(headMsMax, TIMER_MS_MAX),
    );
    // Not AbortSignal.any, because a signal that lives as long as the process would keep every combination of it that has a listener.
    const onAbort = () => ended.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort);
    let fetching: Promise<Response> | undefined;
    const ownHeaders = (refused?: A2AError) => unlessAborted(this.#ownHeaders(refused), ended.signal);
    try {
      let own = await ownHeaders();
      for (let isRenewed = false; ; isRenewed = true) {
        const headers = { ...own, ...init.headers };
        // A redirect would send the caller's headers and message to an address of the server's choice.
        const sent = { ...init, headers, redirect: 'manual', cache: 'no-store', signal: ended.signal } as const;
        fetching = this.#fetch(url, sent);
        const response = await unlessAborted(fetching, ended.signal);
        if (response.ok) return response;
        const failure = await failureOf(response, url, { silenceMsMax: headMsMax, signal: ended.signal, hasAnswered });
        if (isRenewed || failure.error.code !== 'UNAUTHENTICATED') throw failure;
        // A token may expire on the way, or be revoked. A refused request had no effect, so it may be sent again.
        const renewed = await ownHeaders(failure.error);
        if (JSON.stringify(renewed) === JSON.stringify(own)) throw failure;
        own = renewed;
      }
    } catch (thrown) {
      if (thrown instanceof FailedTry) throw thrown;
      // A response that comes later holds a connection.
      if (ended.signal.aborted) fetching?.then(({ body }) => body?.cancel()).catch(() => {});
      // Another try would wait for a connection as well.
      const isCrowded = isLate && !streams && this.streams >= CONNECTIONS_MAX && 'document' in globalThis;
      const why = isCrowded
        ? `: ${this.streams} streams of this client are open, and a browser has at most ${CONNECTIONS_MAX} connections to a server over HTTP/1.1`
        : '';
      const detail = isLate
        ? `${url.origin}${url.pathname} did not respond within ${headMsMax} ms${why}`
        : `${url.origin}${url.pathname} cannot be reached${codeOf(thrown)}`;
      throw new FailedTry(new A2AError('UNAVAILABLE', { detail, cause: thrown, retryable: !isCrowded }), { reached: false });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async #ownHeaders(refused?: A2AError): Promise<RequestHeaders> {
    if (typeof this.#headers !== 'function') return this.#headers;
    try {
      return Object.fromEntries(new Headers(await this.#headers(refused)));
    } catch (thrown) {
      if (thrown instanceof A2AError) throw new FailedTry(thrown, { reached: false });
      const detail = `the function for the headers failed: ${thrown instanceof Error ? thrown.message : thrown}`;
      throw new FailedTry(new A2AError('UNAVAILABLE', { detail, cause: thrown }), { reached: false });
    }
  }
}

/** Rejects when the signal aborts, because a function of the caller's own may ignore it. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(resolve, reject).then(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Causes of an error that are looked at. */
const CAUSES_MAX = 4;

/** The system's code of a failed `fetch`, such as ECONNREFUSED, or the refusal of a proxy; browsers have neither. */
function codeOf(thrown: unknown): string {
  let cause = thrown instanceof Error ? thrown.cause : undefined;
  let found = '';
  for (let depth = 0; depth < CAUSES_MAX && isObject(cause); depth += 1) {
    // The wording of Node, which has no code for it.
    const status = /^Proxy response \((\d{3})\)/.exec(String(cause.message))?.[1];
    if (status !== undefined) return ` (the proxy responded with HTTP ${status})`;
    if (found === '' && typeof cause.code === 'string') found = ` (${cause.code})`;
    cause = cause.cause;
  }
  return found;
}

/** The `result` of a JSON-RPC response. Throws FailedTry with the response's error. */
export async function resultOf(response: Response, options: BodyOptions): Promise<unknown> {
  const body = parseJson(await bodyText(response, options));
  if (isObject(body) && isObject(body.error)) throw new FailedTry(errorOf(body.error));
  if (isObject(body) && 'result' in body) return body.result;
  throw notA2A(`the body is not a JSON-RPC response${senderOf(response)}`);
}

export function notA2A(detail: string, retryable = false): FailedTry {
  return new FailedTry(new A2AError('INVALID_AGENT_RESPONSE', { detail, retryable }));
}

/** Names the media type of a response that A2A does not have, and who sends pages. */
export function senderOf({ headers }: Response): string {
  const type = /^[\w.+-]{1,64}\/[\w.+-]{1,64}/.exec(headers.get('content-type') ?? '')?.[0] ?? '';
  if (type === '') return '';
  return `, but ${type}${type === 'text/html' ? ': a proxy, or the login page of the network, may have sent it' : ''}`;
}

/** Largest error body that is read. */
const ERROR_BYTES_MAX = 64 * 1024;
/** Request timeout, too early, too many requests; in addition to all 5xx. */
const RETRYABLE_STATUSES = [408, 425, 429];

/** Errors of a proxy in front of the server have no JSON-RPC code. */
const CODES_OF_STATUSES: Readonly<Record<number, A2AErrorCode>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  413: 'REQUEST_TOO_LARGE',
};

async function failureOf(
  response: Response,
  url: URL,
  { hasAnswered, ...options }: BodyOptions & { hasAnswered: boolean },
): Promise<FailedTry> {
  const { status } = response;
  if (response.type === 'opaqueredirect' || REDIRECTS.includes(status)) return redirectOf(response, url, hasAnswered);
  const retryable = status >= 500 || RETRYABLE_STATUSES.includes(status);
  const delayMs = parseRetryAfter(response.headers.get('retry-after'), response.headers.get('date'), Date.now());
  const challenge = response.headers.get('www-authenticate');
  const headers: ErrorHeaders = {
    ...(delayMs !== undefined && { retryAfterMs: delayMs }),
    ...(challenge !== null && { challenge }),
  };
  const body = parseJson(await bodyText(response, { ...options, bytesMax: ERROR_BYTES_MAX }).catch(() => ''));
  if (isObject(body) && isObject(body.error)) return new FailedTry(errorOf(body.error, retryable, headers), { delayMs });
  const refusal = CODES_OF_STATUSES[status];
  const isTransient = retryable || (hasAnswered && refusal === undefined);
  const code = retryable ? 'UNAVAILABLE' : (refusal ?? 'INVALID_AGENT_RESPONSE');
  const detail = `the server responded with HTTP ${status}`;
  return new FailedTry(new A2AError(code, { ...headers, detail, retryable: isTransient }), { delayMs, status });
}

const REDIRECTS = [301, 302, 303, 307, 308];

/** Names the address without credentials and query. A page is not shown it. */
function redirectOf({ headers, body }: Response, url: URL, hasAnswered: boolean): FailedTry {
  body?.cancel().catch(() => {});
  const location = headers.get('location');
  const target = location !== null && URL.canParse(location, url.href) ? new URL(location, url) : undefined;
  const address = target === undefined ? 'another address' : `${target.origin}${target.pathname}`;
  return notA2A(`${url.origin}${url.pathname} redirects to ${address}, and redirects are not followed`, hasAnswered);
}
