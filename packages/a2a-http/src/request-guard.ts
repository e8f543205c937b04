import type { IncomingMessage } from 'node:http';
import { A2AError, VERSION_HEADER } from '@hopline/a2a';
import type { A2AServer } from '@hopline/a2a-server';
import { EXTENSIONS_HEADER, LEGACY_EXTENSIONS_HEADER } from '@hopline/agent-card';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * Keeps web pages away from a server without authentication, which every browser on its network can reach. With authentication the guard is
 * not needed: credentials are in headers that a browser does not add by itself.
 */
export type RequestGuardOptions = {
  /** Host names of this server. A request for another name may have come by DNS rebinding. */
  hosts: { readonly refusal: string; allowsRequest(request: IncomingMessage): boolean };
  /** Origins of pages that may send requests. */
  origins: readonly string[] | '*';
  publicUrl: string | undefined;
};

/** Thrown before a binding parses the request; the binding answers in its own form. */
export class RefusedRequest extends Error {
  override readonly name = 'RefusedRequest';
  readonly statusCode: number;
  readonly error: A2AError;

  constructor(statusCode: number, error: A2AError) {
    super(error.message);
    this.statusCode = statusCode;
    this.error = error;
  }
}

/** RFC 9110 15.5.20. */
const MISDIRECTED_STATUS = 421;

/** Methods without effects, because a page of another origin could not read the response anyway. */
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** Media types that need a preflight when a page of another origin sends them. */
const PREFLIGHTED_HEADERS = [
  'content-type',
  'authorization',
  'x-requested-with',
  VERSION_HEADER,
  EXTENSIONS_HEADER,
  LEGACY_EXTENSIONS_HEADER,
];

/** Checks the Host of every request of an app, its probes included. Call it before any route is registered. */
export function guardHosts(app: FastifyInstance, { hosts }: RequestGuardOptions): void {
  app.addHook('onRequest', async request => {
    if (hosts.allowsRequest(request.raw)) return;
    throw new RefusedRequest(MISDIRECTED_STATUS, new A2AError('PERMISSION_DENIED', { detail: hosts.refusal }));
  });
}

/**
 * Refuses a body in a content coding, such as gzip, and names the only one that is accepted (RFC 9110 15.5.16). Its bytes would otherwise be
 * reported as invalid JSON. Bodies are small, and a bound of decompressed bytes would be one more to keep.
 */
export function refuseCodings(scope: FastifyInstance): void {
  scope.addHook('onRequest', async ({ headers }, reply) => {
    const coding = headers['content-encoding']?.trim().toLowerCase() ?? '';
    if (coding === '' || coding === IDENTITY) return;
    reply.header('accept-encoding', IDENTITY);
    const detail = 'the body must not be compressed: send it without content-encoding';
    throw new RefusedRequest(415, new A2AError('CONTENT_TYPE_NOT_SUPPORTED', { detail }));
  });
}

/** No coding (RFC 9110 12.5.3). */
const IDENTITY = 'identity';

/** Bytes of a body that is read, and parsed, before its caller is known: the error of a small request then has its id. */
export const UNKNOWN_CALLER_BODY_BYTES_MAX = 16 * 1024;

/**
 * Identifies the caller of a larger body before it is read, and counts its bytes. Otherwise requests without credentials, or beyond their
 * caller's limits, could keep the process busy with parsing.
 */
export function guardBodies(scope: FastifyInstance, server: Pick<A2AServer, 'authenticate' | 'quotas'>): void {
  scope.addHook('onRequest', async request => {
    const bytes = bytesOf(request);
    if (SAFE_METHODS.includes(request.method) || bytes <= UNKNOWN_CALLER_BODY_BYTES_MAX) return;
    try {
      const caller = await server.authenticate({ headers: request.headers, tenant: undefined });
      if (Number.isFinite(bytes)) server.quotas.takeBytes(caller, bytes, false);
    } catch (thrown) {
      const error = A2AError.from(thrown);
      throw new RefusedRequest(error.row.http, error);
    }
  });
}

/** Bytes of a body that are still to be counted for its caller. */
export function uncountedBytes(request: FastifyRequest): number {
  const bytes = bytesOf(request);
  if (Number.isFinite(bytes) && bytes > UNKNOWN_CALLER_BODY_BYTES_MAX) return 0;
  return Buffer.isBuffer(request.body) ? request.body.length : 0;
}

/** Bytes of a body as its headers name them; infinite if they do not. */
function bytesOf({ headers }: FastifyRequest): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Number.POSITIVE_INFINITY;
}

/** Refuses requests that a page of another origin could send without being asked (cross-site request forgery). */
export function guardPages(scope: FastifyInstance, options: RequestGuardOptions): void {
  scope.addHook('onRequest', async request => {
    if (SAFE_METHODS.includes(request.method)) return;
    if (!isOriginAllowed(request, options)) {
      const detail = 'HOPLINE_CORS_ORIGINS does not list the origin of this page';
      throw new RefusedRequest(403, new A2AError('PERMISSION_DENIED', { detail }));
    }
    // Browsers preflight every method except POST, and every POST of JSON. Fastify refuses the media types of forms.
    if (request.method !== 'POST' || PREFLIGHTED_HEADERS.some(name => request.headers[name] !== undefined)) return;
    const detail = 'a POST needs the header content-type: application/json, or A2A-Version';
    throw new RefusedRequest(415, new A2AError('CONTENT_TYPE_NOT_SUPPORTED', { detail }));
  });
}

function isOriginAllowed({ raw, headers }: FastifyRequest, { origins, publicUrl }: RequestGuardOptions): boolean {
  if (origins === '*') return true;
  const publicOrigin = publicUrl === undefined ? undefined : URL.parse(publicUrl)?.origin;
  const host = headers.host?.toLowerCase();
  const isOwn = (origin: string) => origin === publicOrigin || (host !== undefined && URL.parse(origin)?.host === host);
  const isAllowed = (origin: string) => origins.includes(origin) || isOwn(origin);
  // Node joins repeated headers; `headersDistinct` would keep a list of each header for as long as the response is open.
  return raw.headers.origin === undefined || raw.headers.origin.split(', ').every(isAllowed);
}
