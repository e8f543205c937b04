import { A2AError } from '@hopline/a2a';
import { LINE, type Logger } from '@hopline/telemetry';
import { errors } from 'jose';
import { type FindKey, parseKeySet } from './key-set.ts';

/** Time limit of a complete response. */
export const KEY_SET_FETCH_MS_MAX = 5_000;
export const KEY_SET_BYTES_MAX = 256 * 1024;
/** Keys of this age are refetched while they stay in use. */
export const KEY_SET_FRESH_MS = 600_000;
/** Minimum time between refetches for unknown key ids, because anyone can make up key ids. */
export const KEY_SET_COOLDOWN_MS = 30_000;
/** Delay after a failed fetch. */
export const KEY_SET_RETRY_MS = 2_000;

type RemoteKeySetOptions = {
  url: string;
  /** How long keys stay in use after their refetch was due. */
  staleMsMax: number;
  logger: Logger;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
};

/**
 * The keys of an issuer, by URL. jose's remote set refuses every token once the URL has been unreachable for its cache age.
 * This one keeps using its keys for a time set by the operator, which is also how long a revoked key stays trusted while the
 * URL is unreachable.
 */
export class RemoteKeySet {
  readonly #options: RemoteKeySetOptions;
  readonly #closing = new AbortController();
  readonly #now: () => number;
  #keys: { find: FindKey; atMs: number } | undefined;
  #nextTryMs = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;

  constructor(options: RemoteKeySetOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Throws UNAVAILABLE while there are no usable keys, and jose's errors. */
  readonly find: FindKey = async (header, token) => {
    if (this.#usable() === undefined) await this.refresh();
    else if (this.#age() >= KEY_SET_FRESH_MS) void this.refresh();
    try {
      return await this.#required()(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.refresh();
      return await this.#required()(header, token);
    }
  };

  /** Fetches the keys, unless the cooldown of an earlier attempt has not ended. Never rejects. */
  async refresh(): Promise<void> {
    if (this.#loading === undefined && this.#now() >= this.#nextTryMs) {
      this.#loading = this.#load().finally(() => {
        this.#loading = undefined;
      });
    }
    await this.#loading;
  }

  close(): void {
    this.#closing.abort();
  }

  #age(): number {
    return this.#keys === undefined ? Number.POSITIVE_INFINITY : this.#now() - this.#keys.atMs;
  }

  #usable(): FindKey | undefined {
    return this.#age() <= KEY_SET_FRESH_MS + this.#options.staleMsMax ? this.#keys?.find : undefined;
  }

  #required(): FindKey {
    const find = this.#usable();
    if (find === undefined) throw new A2AError('UNAVAILABLE', { detail: 'tokens cannot be verified at the moment; retry later' });
    return find;
  }

  async #load(): Promise<void> {
    try {
      const find = parseKeySet(await this.#fetch());
      this.#keys = { find, atMs: this.#now() };
      this.#nextTryMs = this.#now() + KEY_SET_COOLDOWN_MS;
    } catch (error) {
      this.#nextTryMs = this.#now() + KEY_SET_RETRY_MS;
      if (this.#closing.signal.aborted) return;
      this.#options.logger.warn({ reason: fetchFailure(error) }, LINE.keySetNotFetched);
    }
  }

  async #fetch(): Promise<string> {
    const { url } = this.#options;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(KEY_SET_FETCH_MS_MAX)]);
    const response = await fetch(url, { headers: { accept: 'application/json' }, redirect: 'error', signal });
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      // Leaving the loop cancels the rest.
      if (bytes > KEY_SET_BYTES_MAX) throw new Error(`the key set exceeds ${KEY_SET_BYTES_MAX} bytes`);
      chunks.push(chunk);
    }
    if (!response.ok) throw new Error(`the server responded with HTTP ${response.status}`);
    return Buffer.concat(chunks).toString('utf8');
  }
}

/** fetch puts the reason in its cause. */
function fetchFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { code } = (error.cause ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : error.message;
}
