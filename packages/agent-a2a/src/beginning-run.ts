import { CANCEL_MS_MAX } from '@hopline/agent';

/**
 * The request that begins a run. When its turn is stopped before the agent has named its task, the request stays open until the agent has
 * named it, because closing a connection does not cancel a task, and tasks/cancel needs the id.
 */
export class BeginningRun implements Disposable {
  /** Aborts when the turn is stopped, but only after the agent has named its task, or `msMax` later if it does not. */
  readonly signal: AbortSignal;
  readonly #request = new AbortController();
  readonly #turn: AbortSignal;
  readonly #msMax: number;
  readonly #onStopped = () => this.#stop();
  #isNamed = false;
  #timer: NodeJS.Timeout | undefined;

  /** A turn that was already stopped sends no request. `msMax` is how long a cancel is repeated. */
  constructor(turn: AbortSignal, msMax = CANCEL_MS_MAX) {
    this.signal = this.#request.signal;
    this.#turn = turn;
    this.#msMax = msMax;
    if (turn.aborted) this.#abort();
    else turn.addEventListener('abort', this.#onStopped, { once: true });
  }

  /** The agent has named its task, which can be canceled from now on. */
  named(): void {
    this.#isNamed = true;
    if (this.#turn.aborted) this.#abort();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#turn.removeEventListener('abort', this.#onStopped);
  }

  #stop(): void {
    if (this.#isNamed) this.#abort();
    else this.#timer = setTimeout(() => this.#abort(), this.#msMax);
  }

  #abort(): void {
    this.#request.abort(this.#turn.reason);
  }
}
