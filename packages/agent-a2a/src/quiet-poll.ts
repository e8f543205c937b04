import { AgentFault, NO_TERMINAL_STATE } from './agent-fault.ts';

/**
 * Polls whenever a subscription has brought no event for a while. `signal` aborts with the turn, and also when a poll shows that the
 * subscription should be abandoned. A failed poll is ignored.
 */
export class QuietPoll implements Disposable {
  readonly signal: AbortSignal;
  readonly #leave = new AbortController();
  readonly #isOver: (signal: AbortSignal) => Promise<boolean>;
  readonly #timer: NodeJS.Timeout;
  #isPaused = false;

  constructor(everyMs: number, isOver: (signal: AbortSignal) => Promise<boolean>, turn: AbortSignal) {
    this.signal = AbortSignal.any([turn, this.#leave.signal]);
    this.#isOver = isOver;
    this.#timer = setTimeout(() => void this.#poll(), everyMs);
  }

  /** Stops polling while our side processes events and does not read. Otherwise events that wait to be read would be lost. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#timer.refresh();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#leave.abort();
  }

  async #poll(): Promise<void> {
    const isOver = !this.#isPaused && (await this.#isOver(this.signal).catch(() => false));
    if (this.signal.aborted) return;
    if (isOver && !this.#isPaused) this.#leave.abort(new AgentFault(NO_TERMINAL_STATE, true));
    else this.#timer.refresh();
  }
}
