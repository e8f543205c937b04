import { readFileSync } from 'node:fs';
import { A2AError } from '@hopline/a2a';
import { buildConnector, type Dispatcher, Pool } from 'undici';

/** Time limit until ingress begins to answer. Audits of long tasks take seconds. */
const ANSWER_MS_MAX = 60_000;
/** Longest silence of a stream. Ingress sends a comment at least every minute. */
const SILENCE_MS_MAX = 150_000;
/** How long the answer of ingress about its authentication is trusted. */
const AUTH_CHECK_MS = 30_000;

type IngressRequest = {
  method: 'GET' | 'POST';
  /** Path with its query. */
  path: string;
  headers: Record<string, string>;
  body?: Buffer;
  signal?: AbortSignal;
};

/** Nothing answered at the address of ingress. The console, as a gateway, then answers 502, but it passes on a 503 of ingress. */
export class IngressUnreachable extends A2AError {
  constructor(cause: unknown) {
    super('UNAVAILABLE', { detail: certificateFault(cause) ?? 'ingress does not answer', cause });
  }
}

/** A sentence if the certificate of ingress, or the file of its authorities, cannot be used. */
function certificateFault(cause: unknown): string | undefined {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'the certificate of ingress is for another name';
  if (code === 'CERT_HAS_EXPIRED') return 'the certificate of ingress has expired';
  if (code === 'ENOENT' || code === 'EACCES') return 'HOPLINE_CONSOLE_INGRESS_CA_FILE cannot be read';
  const isUntrusted = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_)/.test(code);
  return isUntrusted ? `the certificate of ingress is not trusted (${code})` : undefined;
}

/** Reads the authorities at each connection, so that they can be renewed while the console runs. */
function connectorWith(caFile: string): buildConnector.connector {
  return (options, callback) => {
    let ca: string;
    try {
      ca = readFileSync(caFile, 'utf8');
    } catch (error) {
      return callback(error as Error, null);
    }
    buildConnector({ ca })(options, callback);
  };
}

/** Requests to one ingress, or to the load balancer in front of several. */
export class IngressConnection {
  readonly url: string;
  readonly #pool: Pool;
  readonly #basePath: string;
  #auth: { checkedAt: number; isRequired: Promise<boolean> } | undefined;

  /** `caFile`: authorities for the certificate of ingress. Default: those that Node trusts. */
  constructor(url: string, caFile?: string) {
    this.url = url;
    const { origin, pathname } = new URL(url);
    this.#basePath = pathname.replace(/\/$/, '');
    this.#pool = new Pool(origin, {
      headersTimeout: ANSWER_MS_MAX,
      bodyTimeout: SILENCE_MS_MAX,
      ...(caFile !== undefined && { connect: connectorWith(caFile) }),
    });
  }

  /** Throws IngressUnreachable. The path is sent as it is: nothing in it is resolved. */
  async request({ path, ...request }: IngressRequest): Promise<Dispatcher.ResponseData> {
    try {
      return await this.#pool.request({ ...request, path: this.#basePath + path });
    } catch (cause) {
      if (request.signal?.aborted) throw cause;
      throw new IngressUnreachable(cause);
    }
  }

  /** Whether ingress refuses requests without credentials. Asked at most every AUTH_CHECK_MS. */
  async requiresCredentials(): Promise<boolean> {
    const now = performance.now();
    if (this.#auth === undefined || now - this.#auth.checkedAt > AUTH_CHECK_MS) {
      const isRequired = this.#listStatus().then(status => status === 401 || status === 403);
      this.#auth = { checkedAt: now, isRequired };
      // A failure is not an answer: the next request asks again.
      isRequired.catch(() => {
        this.#auth = undefined;
      });
    }
    return this.#auth.isRequired;
  }

  /** Rejects unless ingress accepts the credentials. */
  async requireAccepted(credentials: Record<string, string>): Promise<void> {
    const status = await this.#listStatus(credentials);
    if (status === 401) throw new A2AError('UNAUTHENTICATED');
    if (status !== 200) throw new A2AError('PERMISSION_DENIED', { detail: 'ingress refuses these credentials' });
  }

  /** Rejects while ingress is not ready. Asks for a task list, because /readyz of ingress does not answer under its public name. */
  async check(signal: AbortSignal): Promise<void> {
    await this.#listStatus({}, signal);
  }

  /** Status of a list of one task. Rejects while ingress is not ready. */
  async #listStatus(credentials: Record<string, string> = {}, signal?: AbortSignal): Promise<number> {
    const headers = { 'a2a-version': '1.0', ...credentials };
    const { statusCode, body } = await this.request({
      method: 'GET',
      path: '/tasks?pageSize=1',
      headers,
      ...(signal && { signal }),
    });
    await body.dump();
    if (statusCode >= 500) throw new A2AError('UNAVAILABLE', { detail: 'ingress is not ready' });
    return statusCode;
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
