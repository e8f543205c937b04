import { AsyncLocalStorage } from 'node:async_hooks';
import { type ElicitResult, ProtocolError } from '@modelcontextprotocol/client';
import type { Elicitation } from './elicitation.ts';

/** A call that may get questions of its server. */
export type AskableCall = {
  signal: AbortSignal;
  answer(elicitation: Elicitation): ElicitResult;
  /** The server has asked a question that may belong to this call or to another one. */
  unmatched(): void;
};

export type OpenCallsOptions = {
  /** Runs one call at a time. */
  isSequential: boolean;
  /**
   * A question cannot be assigned to a call with certainty. The connection must end, because only a new one has no calls that may still
   * ask.
   */
  onUnmatched: () => void;
};

/**
 * The open calls of a connection. A question of a server does not name its call (before MCP 2026-07-28). Over HTTP it arrives in the
 * response to its call. Over stdio it can be assigned only if the server may still run just one call, because a question of another user's
 * call must never be shown.
 */
export class OpenCalls {
  readonly #options: OpenCallsOptions;
  readonly #open = new Set<AskableCall>();
  readonly #current = new AsyncLocalStorage<AskableCall>();
  /** Some call has ended without a response, so the server may still run it. */
  #hasLeft = false;
  #last = Promise.resolve();

  constructor(options: OpenCallsOptions) {
    this.#options = options;
  }

  async run<T>(call: AskableCall, request: () => Promise<T>): Promise<T> {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    if (this.#options.isSequential) {
      const earlier = this.#last;
      this.#last = earlier.then(() => ended);
      await settledOrAborted(earlier, call.signal);
    }
    try {
      call.signal.throwIfAborted();
      this.#open.add(call);
      return await this.#current.run(call, request);
    } catch (error) {
      if (!(error instanceof ProtocolError)) this.#hasLeft = true;
      throw error;
    } finally {
      this.#open.delete(call);
      end();
    }
  }

  /** The answer to a question of the server. Undefined if no call is open. */
  answer(elicitation: Elicitation): ElicitResult | undefined {
    const [only, ...others] = this.#open;
    const isCertain = others.length === 0 && !this.#hasLeft;
    const call = this.#current.getStore() ?? (isCertain ? only : undefined);
    if (call !== undefined) return call.answer(elicitation);
    if (only === undefined) return undefined;
    for (const one of this.#open) one.unmatched();
    this.#options.onUnmatched();
    return { action: 'cancel' };
  }
}

function settledOrAborted(earlier: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const go = () => {
      signal.removeEventListener('abort', go);
      resolve();
    };
    signal.addEventListener('abort', go);
    if (signal.aborted) go();
    void earlier.then(go);
  });
}
