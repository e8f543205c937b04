import type { ModelLimits } from './limits.ts';
import { ModelError, type ModelErrorCode } from './model-error.ts';

/** Aborts a request whose model does not begin, falls silent, or does not end. */
export class SilenceWatch {
  readonly #stop = new AbortController();
  readonly #silenceMsMax: number;
  readonly #total: NodeJS.Timeout;
  #silence: NodeJS.Timeout;
  #begun = false;
  #isPaused = false;

  constructor({ firstTokenMsMax, silenceMsMax, totalMsMax }: ModelLimits) {
    this.#silenceMsMax = silenceMsMax;
    this.#total = this.#failAfter(totalMsMax, 'too_slow');
    this.#silence = this.#silentAfter(firstTokenMsMax, 'no_first_token');
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Why it aborted the request. */
  get failure(): ModelError | undefined {
    return this.#stop.signal.aborted ? (this.#stop.signal.reason as ModelError) : undefined;
  }

  /** The model has said something. */
  beat(): void {
    if (this.#begun) {
      this.#silence.refresh();
      return;
    }
    this.#begun = true;
    clearTimeout(this.#silence);
    this.#silence = this.#silentAfter(this.#silenceMsMax, 'silent');
  }

  /** The reader is busy: silence from now on is its own. Once per token, so no timer is made anew. */
  pause(): void {
    this.#isPaused = true;
  }

  /** The reader listens again. */
  resume(): void {
    this.#isPaused = false;
    this.#silence.refresh();
  }

  stop(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#silence);
  }

  #silentAfter(ms: number, code: ModelErrorCode): NodeJS.Timeout {
    return setTimeout(() => this.#isPaused || this.#stop.abort(new ModelError(code)), ms);
  }

  #failAfter(ms: number, code: ModelErrorCode): NodeJS.Timeout {
    return setTimeout(() => this.#stop.abort(new ModelError(code)), ms);
  }
}
