import { TokenBucket } from '@hopline/log';

/**
 * Messages that the answers to one agent may have on their way at once, from the log to the relay and from the relay to the agent. A request of a few bytes
 * asks for hundreds of them, and all share the connection of the relay with its facts. While a relay answered 256 requests for leases at once, a flood of
 * them delayed the first text of others to 611 ms; with this budget, and one read for all that wait, to 72 ms, of 20 without a flood (`npm run bench -- attack`).
 */
const MESSAGES_AT_ONCE_MAX = 1_024;

/**
 * Messages that a relay sends to one agent in a second, on average. An agent reads about as many as its turns have records of earlier messages. Without
 * this limit a flood of requests for leases made a relay send 67,000, which took 0.7 of a core of it and as much of nats-server.
 */
export const MESSAGES_PER_SECOND_MAX = 10_000;

type Waiting = { messages: number; begin: () => void };

/** Grants the requests of one agent in the order of their arrival. */
export class AnswerBudget {
  #used = 0;
  readonly #waiting: Waiting[] = [];
  readonly #rate = new TokenBucket({ perSecond: MESSAGES_PER_SECOND_MAX, burst: MESSAGES_AT_ONCE_MAX }, performance.now());
  #timer: NodeJS.Timeout | undefined;

  /**
   * `messages`: how many the answer may have, at least one. An answer that needs more waits until no other is on its way. `answer` resolves
   * with the number that it had.
   */
  async run(messages: number, answer: () => Promise<number>): Promise<void> {
    const part = Math.min(messages, MESSAGES_AT_ONCE_MAX);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ messages: part, begin: resolve });
    this.#begin();
    await promise;
    let sent = 1;
    try {
      sent = await answer();
    } finally {
      this.#rate.take(sent, performance.now());
      this.#used -= part;
      this.#begin();
    }
  }

  /** Milliseconds until the agent may send as much as one that has sent nothing. */
  get fullInMs(): number {
    return this.#rate.waitMs(MESSAGES_AT_ONCE_MAX, performance.now());
  }

  #begin(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#used + next.messages > MESSAGES_AT_ONCE_MAX) return;
      const waitMs = this.#rate.waitMs(1, performance.now());
      if (waitMs > 0) {
        this.#beginIn(waitMs);
        return;
      }
      this.#waiting.shift();
      this.#used += next.messages;
      next.begin();
    }
  }

  #beginIn(waitMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#begin();
    }, waitMs);
  }
}
