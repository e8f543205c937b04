import { setTimeout as delay } from 'node:timers/promises';
import type { Webhook, Webhooks } from './options.ts';

type Pause = {
  signal: AbortSignal;
  /** Between two looks at least, milliseconds: an agent that calls for every token is not asked for every one. */
  restMs: number;
  /** Nobody is waited for longer, milliseconds. */
  msMax: number;
};

/** The calls of an agent during one turn. Calls that come before anybody looks are one, and none is lost between two looks. */
export class WebhookCalls {
  readonly #webhook: Webhook | undefined;
  #called = Promise.withResolvers<void>();
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(webhooks: Webhooks) {
    this.#webhook = webhooks.open(() => this.#called.resolve());
  }

  /** undefined: the agent has no address to call. */
  get url(): string | undefined {
    return this.#webhook?.url;
  }

  /** Resolves when it is time to look. Rejects with the signal's AbortError. */
  async next({ signal, restMs, msMax }: Pause): Promise<void> {
    const over = new AbortController();
    try {
      await Promise.race([this.#called.promise, wait(msMax, AbortSignal.any([signal, over.signal]))]);
    } finally {
      over.abort();
    }
    await wait(Math.min(this.#lookedAtMs + restMs - performance.now(), msMax), signal);
    this.#called = Promise.withResolvers();
    this.#lookedAtMs = performance.now();
  }

  close(): void {
    this.#webhook?.close();
  }
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, ms), undefined, { signal });
}
