import { isUtf8 } from 'node:buffer';
import {
  A2AError,
  type DialectName,
  isDeeperThan,
  JSON_DEPTH_MAX,
  namedDialect,
  SSE_CONTENT_TYPE,
  VERSION_HEADER,
  VERSION_QUERY,
} from '@hopline/a2a';
import type { FastifyRequest } from 'fastify';

/** Parses a JSON body. Throws INVALID_PARAMS if it nests too deeply for code that walks it. */
export function jsonOf(body: unknown): unknown {
  const value = jsonOfAnyDepth(body);
  if (isDeeperThan(value, JSON_DEPTH_MAX))
    throw new A2AError('INVALID_PARAMS', { detail: `the body must not nest deeper than ${JSON_DEPTH_MAX} levels` });
  return value;
}

/** Matches every text with a number beyond the range of a double, and few others. */
const MAYBE_TOO_LARGE = /\d[eE]\+?\d{3}|\d{309}/;

/**
 * Parses a JSON body whose depth the caller checks. Refuses invalid UTF-8, which would otherwise be replaced silently and change the client's
 * text, and numbers beyond the range of a double, which would become null.
 */
export function jsonOfAnyDepth(body: unknown): unknown {
  if (!Buffer.isBuffer(body)) throw new A2AError('PARSE_ERROR', { detail: 'the body is empty' });
  if (!isUtf8(body)) throw new A2AError('PARSE_ERROR', { detail: 'the body must be UTF-8' });
  const text = body.toString('utf8');
  try {
    return JSON.parse(text, MAYBE_TOO_LARGE.test(text) ? refuseTooLarge : undefined) as unknown;
  } catch (cause) {
    throw cause instanceof A2AError ? cause : new A2AError('PARSE_ERROR', { cause });
  }
}

function refuseTooLarge(_name: string, value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value;
  throw new A2AError('PARSE_ERROR', { detail: 'a number is beyond the range of a double' });
}

export function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

export function queryOf(request: FastifyRequest, name: string): string | undefined {
  const value = (request.query as Record<string, unknown>)[name];
  return typeof value === 'string' ? value : undefined;
}

/** Whether the client accepts only event streams. */
export function acceptsOnlyEvents(request: FastifyRequest): boolean {
  return (headerOf(request, 'accept') ?? '').split(',').every(range => range.trim().toLowerCase() === SSE_CONTENT_TYPE);
}

/** Whether the request is that of an EventSource that connects again after a stream has ended (WHATWG HTML 9.2.3). */
export function reconnects(request: FastifyRequest): boolean {
  return request.method === 'GET' && headerOf(request, 'last-event-id') !== undefined && acceptsOnlyEvents(request);
}

/** The version that a request names: undefined if it names none, `unknown` if it names an unsupported one. */
export function namedVersion(request: FastifyRequest): DialectName | 'unknown' | undefined {
  try {
    return namedDialect(headerOf(request, VERSION_HEADER), queryOf(request, VERSION_QUERY));
  } catch {
    return 'unknown';
  }
}
