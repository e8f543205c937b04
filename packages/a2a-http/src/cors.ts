import { VERSION_HEADER } from '@hopline/a2a';
import { EXTENSIONS_HEADER, LEGACY_EXTENSIONS_HEADER } from '@hopline/agent-card';
import type { FastifyReply, FastifyRequest } from 'fastify';

export type CorsOptions = {
  /** As browsers say them: `https://app.example`. `*`: every page, without cookies and certificates of its user. */
  origins: readonly string[] | '*';
  /** Names of headers that pages may send beside those of A2A: of API keys. */
  requestHeaders: readonly string[];
};

/** How long a browser need not ask again; seconds. Chromium keeps it no longer. */
export const PREFLIGHT_AGE_S = 7_200;

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
];
/** Of answers: what a page would not see otherwise. */
const RESPONSE_HEADERS = ['etag', EXTENSIONS_HEADER, LEGACY_EXTENSIONS_HEADER, 'retry-after', 'www-authenticate', 'allow'].join(
  ', ',
);

/**
 * Which pages of other origins may use a door (Fetch, "CORS protocol"). Not by @fastify/cors 11: to an origin that is not on the list it still says what it exposes and answers preflights,
 * it answers every other OPTIONS with 400 of its own, and it reaches over the whole app, so also `/metrics`.
 */
export class Cors {
  readonly #origins: ReadonlySet<string> | '*';
  readonly #requestHeaders: string;

  constructor({ origins, requestHeaders }: CorsOptions) {
    this.#origins = origins === '*' ? '*' : new Set(origins);
    this.#requestHeaders = [...new Set([...REQUEST_HEADERS, ...requestHeaders])].join(', ').toLowerCase();
  }

  /** Lets the page that asks read the answer, when it may. Sets headers alone, so that event streams have them too. */
  allow(request: FastifyRequest, reply: FastifyReply): void {
    // The same for everybody, so a cache need not tell origins apart.
    if (this.#origins === '*') {
      reply.header('access-control-allow-origin', '*').header('access-control-expose-headers', RESPONSE_HEADERS);
      return;
    }
    varyBy(reply, 'origin');
    const { origin } = request.headers;
    if (origin === undefined || !this.#origins.has(origin)) return;
    reply
      .header('access-control-allow-origin', origin)
      .header('access-control-allow-credentials', 'true')
      .header('access-control-expose-headers', RESPONSE_HEADERS);
  }

  /** Answers a browser that asks whether a page may send a request (a preflight), whatever the path: so that the page reads the 404 as well. False: it is another request, or not of such a page. */
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

/** Names a header of the request that the answer depends on, beside those that are named already. */
export function varyBy(reply: FastifyReply, header: string): void {
  const named = reply.getHeader('vary');
  reply.header('vary', named === undefined ? header : `${named}, ${header}`);
}
