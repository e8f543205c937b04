/** What authenticates the user, sent as a header with every request. */
export type Credentials = { header: string; value: string };

/** What the console allows, from `/console.json`. */
export type ConsoleInfo = {
  version: string;
  writes: boolean;
  apiKeyHeader: string;
  links: { jaeger?: string; grafana?: string };
};

/** A response that is no success. `message`: what the server wrote for its caller. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Only this tab, and until it closes. */
const STORAGE_KEY = 'hopline.credentials';

/** Requests to the console, which passes them to ingress with the credentials of the user. */
export class Connection {
  #credentials = storedCredentials();
  /** When the server answered last, on its own clock; epoch milliseconds. */
  answeredAtMs = Date.now();
  /** Called when the server refuses the credentials, or asks for some. */
  onUnauthenticated: () => void = () => {};

  get isSignedIn(): boolean {
    return this.#credentials !== undefined;
  }

  signIn(credentials: Credentials | undefined): void {
    this.#credentials = credentials;
    if (credentials === undefined) sessionStorage.removeItem(STORAGE_KEY);
    else sessionStorage.setItem(STORAGE_KEY, JSON.stringify(credentials));
  }

  /** A successful response whose body is not read yet. Throws RequestError, or TypeError when nothing answers. */
  async open(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has('a2a-version')) headers.set('a2a-version', '1.0');
    if (this.#credentials !== undefined) headers.set(this.#credentials.header, this.#credentials.value);
    const response = await fetch(path, { ...init, headers, cache: 'no-store', redirect: 'error', credentials: 'omit' });
    const dateMs = Date.parse(response.headers.get('date') ?? '');
    this.answeredAtMs = Number.isNaN(dateMs) ? Date.now() : dateMs;
    if (response.ok) return response;
    if (response.status === 401) this.onUnauthenticated();
    throw new RequestError(response.status, await messageOf(response));
  }

  async json<T>(path: string, init?: RequestInit): Promise<T> {
    return (await this.open(path, init)).json() as Promise<T>;
  }

  async post<T>(path: string, body: unknown): Promise<T> {
    return this.json(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  }
}

async function messageOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error?: { message?: string } | string };
    const message = typeof error === 'string' ? error : error?.message;
    if (message !== undefined) return message;
  } catch {
    // A server on the way wrote the response.
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
