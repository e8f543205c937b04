import { createHash } from 'node:crypto';
import type { Server as HttpsServer } from 'node:https';
import { Readable } from 'node:stream';
import { A2A_JSON_TYPE, A2AError, httpJsonFailure, SSE_CONTENT_TYPE } from '@hopline/a2a';
import { guardHosts, guardPages, RefusedRequest } from '@hopline/a2a-http/request-guard';
import { type EndpointTls, isLoopback } from '@hopline/endpoint';
import { type ProbeOptions, registerProbes } from '@hopline/lifecycle';
import { type agentTasks, observedAt } from '@hopline/local-cluster';
import type { Logger } from '@hopline/telemetry';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { credentialsOf, kindOfRequest, requestHeaders, responseHeaders } from './api-requests.ts';
import type { AppFile, AppFiles } from './app-files.ts';
import { clusterFrames } from './cluster-stream.ts';
import { IngressConnection, IngressUnreachable } from './ingress-connection.ts';
import { killToken, registerKills } from './kill-routes.ts';
import type { LauncherLink } from './launcher-link.ts';
import { OpenRequests } from './open-requests.ts';
import { taskTree } from './task-tree.ts';

type ConsoleDeps = {
  ingressUrl: string;
  /** PEM file of the authorities of ingress. Absent: those that Node trusts. */
  ingressCaFile?: string | undefined;
  files: AppFiles;
  /** Audits of tasks at remote agents. Absent: a task shows no tasks below it. */
  auditBelow?: ReturnType<typeof agentTasks> | undefined;
  /** Users may send messages and cancel tasks. */
  writes: boolean;
  apiKeyHeader: string;
  /** Address on which the console listens. */
  host: string;
  /** True if callers need no credentials even if the console listens on an address other than loopback. */
  allowsNoneOnPublic: boolean;
  publicUrl: string | undefined;
  /** Folder with a run.json. Absent: the console has no figures of processes. */
  home: string | undefined;
  links: { jaeger: string | undefined; grafana: string | undefined };
  /** Absent: the page can kill no process. */
  launcher?: LauncherLink | undefined;
  version: string;
  /** Absent: plain HTTP. */
  tls?: EndpointTls | undefined;
  probes: ProbeOptions;
  logger: Logger;
  /** Overrides REQUESTS_MAX. */
  requestsMax?: number;
};

export type ConsoleServer = {
  listen(port: number): Promise<string>;
  check(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
};

/** Largest request body, the same as the default of ingress. */
export const BODY_BYTES_MAX = 1024 * 1024;
/** Time limit for receiving a whole request. */
const REQUEST_MS_MAX = 30_000;

/** Paths of the page's own router, which a reload requests. */
const PAGES = ['/', '/tasks', '/tasks/', '/tasks/:id', '/compare', '/compare/:a', '/compare/:a/:b', '/cluster', '/agents/:name'];

/** Allows only the page's own script and style sheet: agent text that became markup could neither run nor load anything. */
const SECURITY_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

/** The console: its page, and the API of ingress for that page. It stores nothing and has no access to the log. */
export function createConsole(deps: ConsoleDeps): ConsoleServer {
  const ingress = new IngressConnection(deps.ingressUrl, deps.ingressCaFile);
  const app = fastify(serverOptions(deps.tls));
  deps.tls?.keepFresh(app.server as HttpsServer);
  const guard = { hosts: deps.probes.hosts, origins: [], publicUrl: deps.publicUrl };
  guardHosts(app, guard);
  app.addHook('onRequest', async (_request, reply) => {
    // The reply is not returned, because a hook that resolves with it counts as an answer.
    reply.headers(SECURITY_HEADERS);
  });
  app.setNotFoundHandler((_request, reply) => sendError(reply, new A2AError('METHOD_NOT_FOUND', { detail: 'no such path' })));
  app.setErrorHandler<Error & { statusCode?: number }>((thrown, _request, reply) => {
    const error = faultOf(thrown);
    if (error.row.http >= 500) deps.logger.warn({ err: error }, 'request failed');
    return sendError(reply, error, statusOf(thrown));
  });
  registerPages(app, deps.files);
  registerProbes(app, deps.probes);
  app.register(async scope => {
    guardPages(scope, guard);
    scope.addHook('onRequest', async request => refuseOtherSites(request));
    registerApi(scope, ingress, deps);
  });
  return {
    listen: port => app.listen({ host: deps.host, port }),
    check: signal => ingress.check(signal),
    close: async () => {
      await app.close();
      await ingress.close();
    },
  };
}

function serverOptions(tls: EndpointTls | undefined) {
  return {
    https: tls?.options ?? null,
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_MS_MAX,
    forceCloseConnections: 'idle',
    // The framework's own response would quote the URL.
    frameworkErrors: (_error: unknown, _request: FastifyRequest, reply: FastifyReply) => {
      sendError(reply, new A2AError('INVALID_PARAMS', { detail: 'the path must be valid percent-encoding' }));
    },
    // Same limit as in ingress, which refuses ids that are too long.
    routerOptions: { maxParamLength: 1_024 },
  } as const;
}

function registerPages(app: FastifyInstance, files: AppFiles): void {
  const page = files.get('/')!;
  for (const path of PAGES) app.get(path, (request, reply) => sendFile(request, reply, page, 'no-cache'));
  for (const [path, file] of files) {
    // The names of assets contain a hash of their content.
    const age = path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache';
    if (path !== '/') app.get(path, (request, reply) => sendFile(request, reply, file, age));
  }
}

function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, bytes, gzipped }: AppFile,
  caching: string,
): FastifyReply {
  const etag = `"${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}"`;
  reply.headers({ 'cache-control': caching, etag, vary: 'accept-encoding' });
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  const isGzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
  if (isGzip) reply.header('content-encoding', 'gzip');
  return reply.type(type).send(isGzip ? gzipped : bytes);
}

/** Refuses requests of other sites: browsers send the site of a request, other programs do not. */
async function refuseOtherSites({ headers }: FastifyRequest): Promise<void> {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  throw new RefusedRequest(403, new A2AError('PERMISSION_DENIED', { detail: 'a page of another origin has no access' }));
}

/** The configured addresses, else those of `npm run observe`, which may start after the console. */
function linksOf({ links: { jaeger, grafana }, home }: ConsoleDeps): ConsoleDeps['links'] {
  const observed = home === undefined ? {} : observedAt(home);
  return { jaeger: jaeger ?? observed.jaeger, grafana: grafana ?? observed.grafana };
}

function registerApi(scope: FastifyInstance, ingress: IngressConnection, deps: ConsoleDeps): void {
  const { writes, apiKeyHeader, version, requestsMax, launcher, host, publicUrl, home } = deps;
  const open = new OpenRequests(requestsMax);
  scope.addHook('preClose', async () => {
    open.abortAll();
  });
  /** Aborts when the client leaves, or the console drains. */
  const acquire = ({ headers, ip }: FastifyRequest, reply: FastifyReply): AbortSignal => {
    const { signal, release } = open.acquire({ credentials: credentialsOf(headers, apiKeyHeader), address: ip });
    // The client may have left already, and then `close` has been emitted.
    if (reply.raw.destroyed) release();
    else reply.raw.once('close', release);
    return signal;
  };
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(['application/json', A2A_JSON_TYPE], { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );

  scope.get<{ Params: { taskId: string } }>('/below/:taskId', { exposeHeadRoute: false }, async (request, reply) => {
    const { auditBelow } = deps;
    if (auditBelow === undefined) throw new A2AError('METHOD_NOT_FOUND', { detail: 'the console has no agents file' });
    await requireSafeAccess(ingress, deps);
    const signal = acquire(request, reply);
    const credentials = credentialsOf(request.headers, apiKeyHeader);
    reply.header('cache-control', 'no-store');
    return { tasks: await taskTree(request.params.taskId, { ingress, auditBelow, credentials, signal }) };
  });

  scope.get('/console.json', async () => ({
    version,
    writes,
    apiKeyHeader,
    links: linksOf(deps),
    killToken: killToken(deps),
    showsBelow: deps.auditBelow !== undefined,
  }));

  const requireCaller = async ({ headers }: FastifyRequest) => {
    if (await ingress.requiresCredentials()) await ingress.requireAccepted(credentialsOf(headers, apiKeyHeader));
  };
  registerKills(scope, { launcher, host, publicUrl, home, requireCaller });

  scope.get('/cluster.stream', { exposeHeadRoute: false }, async (request, reply) => {
    await requireSafeAccess(ingress, deps);
    const signal = acquire(request, reply);
    const source = { ingressUrl: ingress.url, home: deps.home };
    const frames = await clusterFrames(source, credentialsOf(request.headers, apiKeyHeader), signal).catch(thrown => {
      // The client's own error names the address of ingress, which the page must not see.
      throw thrown instanceof A2AError && thrown.code === 'UNAVAILABLE' ? new IngressUnreachable(thrown) : thrown;
    });
    reply.headers({ 'content-type': SSE_CONTENT_TYPE, 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
    return reply.send(endingQuietly(Readable.from(frames)));
  });

  scope.route({
    method: ['GET', 'POST'],
    url: '/api/*',
    exposeHeadRoute: false,
    handler: async (request, reply) => {
      const target = request.raw.url!.slice('/api'.length);
      const kind = kindOfRequest(request.method, target.replace(/\?.*$/s, ''));
      if (kind === undefined) throw new A2AError('METHOD_NOT_FOUND', { detail: 'the console has no such path' });
      if (kind === 'write' && !writes)
        throw new A2AError('PERMISSION_DENIED', { detail: 'the console only reads; HOPLINE_CONSOLE_WRITES=true allows more' });
      await requireSafeAccess(ingress, deps);
      const signal = acquire(request, reply);
      const { statusCode, headers, body } = await ingress.request({
        method: request.method as 'GET' | 'POST',
        path: target,
        headers: requestHeaders(request.headers, apiKeyHeader),
        ...(request.body instanceof Buffer && { body: request.body }),
        signal,
      });
      reply.code(statusCode).headers({ ...responseHeaders(headers), 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
      return reply.send(endingQuietly(body));
    },
  });
}

/** A stream that breaks after its first byte ends the connection: the page resumes with its cursor. */
function endingQuietly(body: Readable): Readable {
  return body.on('error', () => {});
}

/** Throws for a console on a public address whose ingress asks for no credentials, as one on loopback may. */
async function requireSafeAccess(ingress: IngressConnection, { host, allowsNoneOnPublic }: ConsoleDeps): Promise<void> {
  if (isLoopback(host) || allowsNoneOnPublic || (await ingress.requiresCredentials())) return;
  throw new A2AError('PERMISSION_DENIED', {
    detail:
      'HOPLINE_HOST is not loopback and ingress asks for no credentials: set its HOPLINE_AUTH_ISSUER or HOPLINE_AUTH_API_KEYS_FILE, or HOPLINE_AUTH_NONE_ON_PUBLIC=true here',
  });
}

/** Undefined: the status of the error's code. */
function statusOf(thrown: Error): number | undefined {
  if (thrown instanceof RefusedRequest) return thrown.statusCode;
  return thrown instanceof IngressUnreachable ? 502 : undefined;
}

/** Never exposes the text of an error. */
function faultOf(thrown: Error & { statusCode?: number }): A2AError {
  if (thrown instanceof RefusedRequest) return thrown.error;
  if (thrown instanceof A2AError) return thrown;
  const status = thrown.statusCode ?? 500;
  if (status === 413) return new A2AError('REQUEST_TOO_LARGE', { detail: `the body exceeds ${BODY_BYTES_MAX} bytes` });
  if (status === 415) return new A2AError('CONTENT_TYPE_NOT_SUPPORTED', { detail: 'the content type must be application/json' });
  if (status < 500) return new A2AError('PARSE_ERROR', { detail: 'the body does not match its headers' });
  return new A2AError('INTERNAL_ERROR', { cause: thrown });
}

function sendError(reply: FastifyReply, error: A2AError, status: number = error.row.http): FastifyReply {
  return reply
    .code(status)
    .headers({ 'content-type': A2A_JSON_TYPE, 'cache-control': 'no-store' })
    .send(Buffer.from(JSON.stringify(httpJsonFailure(error, status))));
}
