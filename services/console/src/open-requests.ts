import { createHash } from 'node:crypto';
import { A2AError } from '@hopline/a2a';

/** Concurrent requests to ingress, including streams. Further ones get 503. */
const REQUESTS_MAX = 500;
/**
 * Share of these requests for one caller, that is, for one set of credentials or, without credentials, one address. Each tab of a page has
 * two streams. Further requests get 429.
 */
const CALLER_SHARE = 0.2;
/**
 * Share of these requests for one address, whatever credentials it uses, because a client can make them up if ingress does not require any.
 */
const ADDRESS_SHARE = 0.8;
/** Retry-After for a caller that has used up its share. */
const RETRY_AFTER_MS = 1_000;

type ConsoleCaller = { credentials: Readonly<Record<string, string>>; address: string };

/** The open requests of the console and their callers. */
export class OpenRequests {
  readonly #max: number;
  readonly #open = new Set<AbortController>();
  readonly #counts = new Map<string, number>();

  constructor(max = REQUESTS_MAX) {
    this.#max = max;
  }

  /**
   * Counts a request until `release`. Throws UNAVAILABLE when all slots are taken, and QUOTA_EXCEEDED when the caller has used up its
   * share.
   */
  acquire({ credentials, address }: ConsoleCaller): { signal: AbortSignal; release: () => void } {
    if (this.#open.size >= this.#max)
      throw new A2AError('UNAVAILABLE', { detail: `${this.#max} requests of the console are open; retry later` });
    const names = Object.entries(credentials);
    const ofAddress = `address ${address}`;
    // Credentials are not stored.
    const caller = names.length === 0 ? ofAddress : createHash('sha256').update(JSON.stringify(names)).digest('base64');
    const shares: [key: string, share: number][] = [
      [caller, CALLER_SHARE],
      [ofAddress, names.length === 0 ? CALLER_SHARE : ADDRESS_SHARE],
    ];
    for (const [key, share] of shares) {
      const max = Math.max(1, Math.floor(this.#max * share));
      if ((this.#counts.get(key) ?? 0) >= max)
        throw new A2AError('QUOTA_EXCEEDED', {
          detail: `${max} requests of this caller are open in the console; close some`,
          retryAfterMs: RETRY_AFTER_MS,
        });
    }
    const keys = new Set(shares.map(([key]) => key));
    for (const key of keys) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    const one = new AbortController();
    this.#open.add(one);
    const release = () => {
      if (!this.#open.delete(one)) return;
      for (const key of keys) {
        const left = this.#counts.get(key)! - 1;
        if (left > 0) this.#counts.set(key, left);
        else this.#counts.delete(key);
      }
      one.abort();
    };
    return { signal: one.signal, release };
  }

  abortAll(): void {
    for (const one of this.#open) one.abort();
  }
}
