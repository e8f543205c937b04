import { setTimeout as delay } from 'node:timers/promises';
import { fullJitterMs } from '@hopline/a2a';
import { CANCEL_MS_MAX, CANCEL_TRY_MS_MAX } from './limits.ts';

/** Bounds of the pauses between two requests. */
const RETRY_MS_MIN = 100;
const RETRY_MS_BASE = 300;
const RETRY_MS_MAX = 4_000;
/** Ids of finished runs that are kept. */
const OVER_MAX = 4_096;

/** One request to cancel a run. Resolves when the server has answered or refused; rejects when it should be repeated. */
export type CancelRequest = (signal: AbortSignal) => Promise<unknown>;

/**
 * Cancels the remote runs of an adapter. Each request is repeated, with jitter, until the server has answered or refused it. A run that has
 * ended, or that is already being canceled, gets no second series of requests.
 */
export class RemoteRunCancels {
  readonly #running = new Map<string, Promise<void>>();
  readonly #over = new Set<string>();
  readonly #closed = new AbortController();
  readonly #msMax: number;
  readonly #tryMsMax: number;

  constructor({ msMax = CANCEL_MS_MAX, tryMsMax = CANCEL_TRY_MS_MAX } = {}) {
    this.#msMax = msMax;
    this.#tryMsMax = tryMsMax;
  }

  /** Records that a run has begun or continues. A task that waited for its client continues under its old id. */
  begun(id: string): void {
    this.#over.delete(id);
  }

  /** Records that the run has ended by itself. */
  ended(id: string): void {
    this.#over.add(id);
    for (const oldest of this.#over) {
      if (this.#over.size <= OVER_MAX) break;
      this.#over.delete(oldest);
    }
  }

  /** Rejects with the error of the last request if none was answered within CANCEL_MS_MAX. */
  async cancel(id: string, request: CancelRequest): Promise<void> {
    if (this.#over.has(id)) return;
    // The first caller starts the request; others wait for it.
    const running =
      this.#running.get(id) ??
      this.#untilAnswered(request)
        .then(() => this.ended(id))
        .finally(() => this.#running.delete(id));
    this.#running.set(id, running);
    await running;
  }

  /**
   * Like `cancel`, but for a turn that is ending: it resolves after the first request, whatever the result. Requests then continue, and
   * `cancel` waits for them.
   */
  async begin(id: string, request: CancelRequest): Promise<void> {
    const { promise: tried, resolve } = Promise.withResolvers<void>();
    this.cancel(id, signal => Promise.race([request(signal), rejectionOf(signal)]).finally(resolve)).then(resolve, () =>
      resolve(),
    );
    await tried;
  }

  /** Sends no further repetitions. */
  close(): void {
    this.#closed.abort();
  }

  async #untilAnswered(request: CancelRequest): Promise<void> {
    const endsAtMs = performance.now() + this.#msMax;
    for (let tries = 1; ; tries += 1) {
      const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(this.#tryMsMax)]);
      try {
        await Promise.race([request(signal), rejectionOf(signal)]);
        return;
      } catch (error) {
        const waitMs = RETRY_MS_MIN + fullJitterMs(tries, RETRY_MS_BASE, RETRY_MS_MAX, Math.random);
        if (this.#closed.signal.aborted || performance.now() + waitMs >= endsAtMs) throw error;
        await delay(waitMs, undefined, { signal: this.#closed.signal });
      }
    }
  }
}

/** Rejects when the signal aborts, because a request may ignore it. */
function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );
}
