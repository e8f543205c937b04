import { VERSION_HEADER } from '@hopline/a2a';
import { EXTENSIONS_HEADER, LEGACY_EXTENSIONS_HEADER } from '@hopline/agent-card';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Header by which a page of another protocol chooses an agent. */
export const AGENT_HEADER = 'hopline-agent';

export type CorsOptions = {
  /** Origins as browsers send them (`https://app.example`), or `*` for every page, without cookies and client certificates. */
  origins: readonly string[] | '*';
  /** Request headers that pages may send besides those of A2A: the headers of API keys. */
  requestHeaders: readonly string[];
};

/** How long a browser may cache a preflight, in seconds. Chromium caches it no longer than this. */
export const PREFLIGHT_AGE_S = 7_200;

/** Headers that the `openai` package sends with every request. */
const OPENAI_HEADERS = [
  'idempotency-key',
  'x-stainless-arch',
  'x-stainless-helper-method',
  'x-stainless-lang',
  'x-stainless-os',
  'x-stainless-package-version',
  'x-stainless-retry-count',
  'x-stainless-runtime',
  'x-stainless-runtime-version',
  'x-stainless-timeout',
];

/** Headers with the position of a stream of the Durable Streams Protocol. */
const DURABLE_STREAMS_HEADERS = ['stream-next-offset', 'stream-cursor', 'stream-up-to-date', 'stream-closed'];

const METHODS = 'GET, HEAD, POST, DELETE';
const REQUEST_HEADERS = [
  'content-type',
  'authorization',
  VERSION_HEADER,
  EXTENSIONS_HEADER,
  LEGACY_EXTENSIONS_HEADER,
  'last-event-id',
  'traceparent',
  'tracestate',
  'if-none-match',
  AGENT_HEADER,
  ...OPENAI_HEADERS,
];
/** Response headers that pages may read. */
const RESPONSE_HEADERS = [
  'etag',
  EXTENSIONS_HEADER,
  LEGACY_EXTENSIONS_HEADER,
  'retry-after',
  'www-authenticate',
  'allow',
  'server-timing',
  'x-should-retry',
  ...DURABLE_STREAMS_HEADERS,
].join(', ');

/**
 * Allows pages of other origins (Fetch, "CORS protocol"). @fastify/cors 11 does not fit: it answers preflights and exposes headers to
 * origins that are not on the list, answers every other OPTIONS with its own 400, and covers the whole app, including `/metrics`.
 */
export class Cors {
  readonly #origins: ReadonlySet<string> | '*';
  readonly #requestHeaders: string;

  constructor({ origins, requestHeaders }: CorsOptions) {
    this.#origins = origins === '*' ? '*' : new Set(origins);
    this.#requestHeaders = [...new Set([...REQUEST_HEADERS, ...requestHeaders])].join(', ').toLowerCase();
  }

  /** Lets an allowed page read the response. Sets headers only, so that event streams have them too. */
  allow(request: FastifyRequest, reply: FastifyReply): void {
    // The response is the same for every origin, so caches need no Vary.
    if (this.#origins === '*') {
      reply.header('access-control-allow-origin', '*').header('access-control-expose-headers', RESPONSE_HEADERS);
      reply.header('timing-allow-origin', '*');
      return;
    }
    varyBy(reply, 'origin');
    const { origin } = request.headers;
    if (origin === undefined || !this.#origins.has(origin)) return;
    reply
      .header('access-control-allow-origin', origin)
      .header('access-control-allow-credentials', 'true')
      .header('timing-allow-origin', origin)
      .header('access-control-expose-headers', RESPONSE_HEADERS);
  }

  /**
   * Answers a preflight at any path, so that the page can read a 404 too. Returns false for other requests and for other
   * origins.
   */
  answersPreflight({ method, headers }: FastifyRequest, reply: FastifyReply): boolean {
    const { origin } = headers;
    if (method !== 'OPTIONS' || origin === undefined || headers['access-control-request-method'] === undefined) return false;
    if (this.#origins !== '*' && !this.#origins.has(origin)) return false;
    reply
      .code(204)
      .header('access-control-allow-methods', METHODS)
      .header('access-control-allow-headers', this.#requestHeaders)
      .header('access-control-max-age', PREFLIGHT_AGE_S)
      .send();
    return true;
  }
}

/** Adds a request header to Vary. */
export function varyBy(reply: FastifyReply, header: string): void {
  const named = reply.getHeader('vary');
  reply.header('vary', named === undefined ? header : `${named}, ${header}`);
}
