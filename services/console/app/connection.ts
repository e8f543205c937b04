import { parseRetryAfter } from '@hopline/a2a';
import { sleep } from '@hopline/client/sleep';
import { chunksOf } from './follow-task.ts';

/** Credentials of the user, sent as a header with every request. */
export type Credentials = { header: string; value: string };

/** Permissions of the console, from `/console.json`. */
export type ConsoleInfo = {
  version: string;
  writes: boolean;
  apiKeyHeader: string;
  links: { jaeger?: string; grafana?: string };
  /** With it the page may kill processes of the cluster of `npm start`. */
  killToken?: string;
  /** The console can show the tasks below a task. */
  showsBelow?: boolean;
  /** The page shows this file, and has no server. */
  fileName?: string;
};

/** Answers a request, as `fetch` does. */
export type Fetch = (path: string, init: RequestInit) => Promise<Response>;

/** An error response. `message`: the text that the server wrote for its caller. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;
  /** The delay that the server asks for. */
  readonly retryAfterMs: number;

  constructor(status: number, message: string, retryAfterMs = 0) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** No answer arrived. Every page shows the connection's `outage` sentence, and the caller tries again. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** Status and text of an error response. Any other error has no status: the answer broke off, or this page does not understand it. */
export function refusalOf(error: unknown): { status: number | undefined; message: string } {
  if (error instanceof RequestError) return error;
  return { status: undefined, message: `the answer cannot be read (${error instanceof Error ? error.name : typeof error})` };
}

/** The console, or a proxy in front of it, could not reach the server behind it. */
const GATEWAY_STATUSES = [502, 504];
/** The server asks to try again later. */
const BUSY_STATUSES = [429, 503];
/**
 * Longest wait for the head of a response: the console waits 60 s for ingress. A connection that died while the machine slept would otherwise be noticed
 * only by the system, after minutes.
 */
export const HEAD_MS_MAX = 70_000;
/** Longest silence in the body of a response that is not a stream. */
export const BODY_SILENCE_MS_MAX = 60_000;
/** Longest delay that a server may ask for. */
const ASKED_MS_MAX = 60_000;
/** Interval of the requests that check whether the server answers again. */
const OUTAGE_CHECK_MS = 2_000;

/** Credentials are kept for this tab until it closes. */
const STORAGE_KEY = 'hopline.credentials';

/** Requests to the console, which passes them to ingress with the credentials of the user. */
export class Connection {
  readonly #fetch: Fetch;
  #credentials = storedCredentials();
  /** Time of the server's last answer, by its own clock, in epoch milliseconds. */
  answeredAtMs = Date.now();
  /** A sentence while the console or ingress does not answer, otherwise empty. */
  outage = '';
  onOutageChange: () => void = () => {};
  #outageTimer: ReturnType<typeof setTimeout> | undefined;
  /** Called when the server refuses the credentials, or asks for some. */
  onUnauthenticated: () => void = () => {};

  constructor(fetchPath: Fetch = (path, init) => fetch(path, init)) {
    this.#fetch = fetchPath;
  }

  get isSignedIn(): boolean {
    return this.#credentials !== undefined;
  }

  /** The credentials are an API key, and not a token. */
  get signsInByKey(): boolean {
    return this.#credentials !== undefined && this.#credentials.header !== 'authorization';
  }

  signIn(credentials: Credentials | undefined): void {
    this.#credentials = credentials;
    try {
      if (credentials === undefined) sessionStorage.removeItem(STORAGE_KEY);
      else sessionStorage.setItem(STORAGE_KEY, JSON.stringify(credentials));
    } catch {
      // A browser may forbid a page to store anything: the credentials last until a reload.
    }
  }

  /** A successful response whose body is not read yet. Throws RequestError, or UnreachableError. */
  async open(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has('a2a-version')) headers.set('a2a-version', '1.0');
    if (this.#credentials !== undefined) headers.set(this.#credentials.header, this.#credentials.value);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), HEAD_MS_MAX);
    const signal = AbortSignal.any([late.signal, ...(init.signal ? [init.signal] : [])]);
    const options = { ...init, signal, headers, cache: 'no-store', redirect: 'error', credentials: 'omit' } as const;
    const response = await this.#fetch(path, options)
      .catch(error => {
        if (init.signal?.aborted) throw error;
        throw this.#unreachable('The console does not answer.');
      })
      .finally(() => clearTimeout(timer));
    if (GATEWAY_STATUSES.includes(response.status)) throw this.#unreachable('Ingress does not answer.');
    // The console answers some paths without ingress.
    if (path.startsWith('/api/')) this.#setOutage('');
    const dateMs = Date.parse(response.headers.get('date') ?? '');
    this.answeredAtMs = Number.isNaN(dateMs) ? Date.now() : dateMs;
    if (response.ok) return response;
    if (response.status === 401) this.onUnauthenticated();
    throw new RequestError(response.status, await messageOf(response), askedMs(response.headers));
  }

  #unreachable(sentence: string): UnreachableError {
    this.#setOutage(`${sentence} This page continues when it does.`);
    clearTimeout(this.#outageTimer);
    // A page that has read everything sends no further requests.
    this.#outageTimer = setTimeout(() => {
      this.open('/api/.well-known/agent-card.json').then(
        ({ body }) => body?.cancel(),
        () => {},
      );
    }, OUTAGE_CHECK_MS);
    return new UnreachableError(sentence);
  }

  #setOutage(outage: string): void {
    if (outage === '') clearTimeout(this.#outageTimer);
    if (outage === this.outage) return;
    this.outage = outage;
    this.onOutageChange();
  }

  async json<T>(path: string, init?: RequestInit): Promise<T> {
    const response = await this.open(path, init);
    return (response.status === 204 ? undefined : JSON.parse(await this.#textOf(response, init?.signal))) as T;
  }

  /** The whole body. A connection that breaks in its middle counts as no answer. */
  async #textOf({ body }: Response, signal: AbortSignal | null | undefined): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    try {
      if (body !== null)
        for await (const chunk of chunksOf(body, BODY_SILENCE_MS_MAX)) text += decoder.decode(chunk, { stream: true });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw this.#unreachable('The console does not answer.');
    }
    return text + decoder.decode();
  }

  /** Like `json`, but tries again while nothing answers or the server is busy. Rejects with the reason of `signal`. */
  async jsonAnswered<T>(path: string, signal: AbortSignal): Promise<T> {
    for (;;) {
      try {
        return await this.json<T>(path, { signal });
      } catch (error) {
        const isBusy = error instanceof RequestError && BUSY_STATUSES.includes(error.status);
        if (!isBusy && !(error instanceof UnreachableError)) throw error;
        const askedMs = isBusy ? error.retryAfterMs : 0;
        await sleep(Math.max(OUTAGE_CHECK_MS, askedMs), signal, askedMs > 0 ? undefined : () => {});
      }
    }
  }

  async post<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
    const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
    return this.json(path, init);
  }
}

/** Ingress sends seconds; a proxy on the way may send a date. */
function askedMs(headers: Headers): number {
  return Math.min(parseRetryAfter(headers.get('retry-after'), headers.get('date'), Date.now()) ?? 0, ASKED_MS_MAX);
}

async function messageOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error?: { message?: string } | string };
    const message = typeof error === 'string' ? error : error?.message;
    if (message !== undefined) return message;
  } catch {
    // The response came from a proxy on the way.
  }
  return `HTTP ${response.status}`;
}

function storedCredentials(): Credentials | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}
