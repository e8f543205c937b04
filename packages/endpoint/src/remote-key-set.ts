import { A2AError } from '@hopline/a2a';
import type { Logger } from '@hopline/telemetry';
import { errors } from 'jose';
import { type FindKey, parseKeySet } from './key-set.ts';

/** The answer must be there, whole, within; milliseconds. */
export const KEY_SET_FETCH_MS_MAX = 5_000;
export const KEY_SET_BYTES_MAX = 256 * 1024;
/** Keys of this age are fetched again, while they go on being used; milliseconds. */
export const KEY_SET_FRESH_MS = 600_000;
/** A token with an unknown key has the keys fetched again, but not more often than this: anybody can make up key ids; milliseconds. */
export const KEY_SET_COOLDOWN_MS = 30_000;
/** After a fetch that failed; milliseconds. */
export const KEY_SET_RETRY_MS = 2_000;

export type RemoteKeySetOptions = {
  url: string;
  /** Keys may be used for so long after the address last answered; milliseconds. */
  staleMsMax: number;
  logger: Logger;
  /** Milliseconds of a clock that never goes back. */
  now?: () => number;
};

/**
 * The keys of an issuer, by URL. jose's own remote set refuses every token once the address has been down for its cache's age; this one goes on with the keys it has, for a time
 * that the operator names: it is also how long a withdrawn key is believed when nobody can say so.
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

  /** Throws UNAVAILABLE while there are no keys that may be used, and jose's errors. */
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

  /** Fetches the keys, unless that was tried just now. Never rejects. */
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
    if (find === undefined) throw new A2AError('UNAVAILABLE', { detail: 'tokens cannot be checked at the moment' });
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
      this.#options.logger.warn({ reason: reasonOf(error) }, 'the key set of the issuer could not be fetched');
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
      if (bytes > KEY_SET_BYTES_MAX) throw new Error(`the key set is larger than ${KEY_SET_BYTES_MAX} bytes`);
      chunks.push(chunk);
    }
    if (!response.ok) throw new Error(`the address answered with HTTP ${response.status}`);
    return Buffer.concat(chunks).toString('utf8');
  }
}

/** fetch says what went wrong in its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { code } = (error.cause ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : error.message;
}
