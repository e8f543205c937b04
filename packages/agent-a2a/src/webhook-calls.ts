import { setTimeout as delay } from 'node:timers/promises';
import type { Webhook, Webhooks } from './options.ts';

type Pause = {
  signal: AbortSignal;
  /** Minimum time between two polls in milliseconds, because an agent may call for every token. */
  restMs: number;
  /** Longest wait for a call, in milliseconds. */
  msMax: number;
};

/** The webhook calls of an agent during one turn. Calls between two polls are merged into one; none is lost. */
export class WebhookCalls {
  readonly #webhook: Webhook | undefined;
  #called = Promise.withResolvers<void>();
  #polledAtMs = Number.NEGATIVE_INFINITY;

  constructor(webhooks: Webhooks) {
    this.#webhook = webhooks.open(() => this.#called.resolve());
  }

  /** Undefined when the agent has no address to call. */
  get url(): string | undefined {
    return this.#webhook?.url;
  }

  /** Resolves when the next poll is due. Rejects with the signal's AbortError. */
  async next({ signal, restMs, msMax }: Pause): Promise<void> {
    const done = new AbortController();
    try {
      await Promise.race([this.#called.promise, wait(msMax, AbortSignal.any([signal, done.signal]))]);
    } finally {
      done.abort();
    }
    await wait(Math.min(this.#polledAtMs + restMs - performance.now(), msMax), signal);
    this.#called = Promise.withResolvers();
    this.#polledAtMs = performance.now();
  }

  close(): void {
    this.#webhook?.close();
  }
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, ms), undefined, { signal });
}
