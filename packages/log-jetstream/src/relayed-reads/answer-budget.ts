/**
 * Messages that the answers to one agent may have on their way at once, from the log to the relay and from the relay to the agent. A request of a few bytes
 * asks for hundreds of them, and all share the connection of the relay with its facts. While a relay answered 256 requests for leases at once, a flood of
 * them delayed the first text of others to 611 ms; with this budget, and one read for all that wait, to 72 ms, of 20 without a flood (`npm run bench -- attack`).
 */
const MESSAGES_AT_ONCE_MAX = 1_024;

type Waiting = { messages: number; begin: () => void };

/** Grants the requests of one agent in the order of their arrival. */
export class AnswerBudget {
  #used = 0;
  readonly #waiting: Waiting[] = [];

  /** `messages`: how many the answer may have, at least one. An answer that needs more waits until no other is on its way. */
  async run(messages: number, answer: () => Promise<void>): Promise<void> {
    const part = Math.min(messages, MESSAGES_AT_ONCE_MAX);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ messages: part, begin: resolve });
    this.#begin();
    await promise;
    try {
      await answer();
    } finally {
      this.#used -= part;
      this.#begin();
    }
  }

  #begin(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#used + next.messages > MESSAGES_AT_ONCE_MAX) return;
      this.#waiting.shift();
      this.#used += next.messages;
      next.begin();
    }
  }
}
