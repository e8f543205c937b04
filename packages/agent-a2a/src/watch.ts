import { AgentFault } from './options.ts';

const seconds = (ms: number) => `${ms / 1000} s`;

/** Aborts a request when its agent is silent for too long, takes too long in all, or the turn is over. `fault` says which. */
export class Watch {
  readonly #abort = new AbortController();
  readonly signal: AbortSignal;
  readonly #silenceMsMax: number;
  readonly #total: NodeJS.Timeout;
  #silence: NodeJS.Timeout | undefined;
  #heard = false;
  #fault: AgentFault | undefined;

  /** `totalMsMax` is what is left for the turn. An infinite limit is none. */
  constructor(limits: { firstEventMsMax: number; silenceMsMax: number; totalMsMax: number }, turn: AbortSignal) {
    this.signal = AbortSignal.any([turn, this.#abort.signal]);
    this.#silenceMsMax = limits.silenceMsMax;
    this.#total = setTimeout(() => this.#expire('the turn took too long', false), Math.max(0, limits.totalMsMax));
    this.#waitFor(limits.firstEventMsMax);
  }

  get fault(): AgentFault | undefined {
    return this.#fault;
  }

  /** The agent sent something. */
  touch(): void {
    if (this.#heard) this.#silence?.refresh();
    else {
      this.#heard = true;
      this.#waitFor(this.#silenceMsMax);
    }
  }

  /** The reader is busy: silence from now on is its own. */
  pause(): void {
    clearTimeout(this.#silence);
    this.#silence = undefined;
  }

  resume(): void {
    this.#waitFor(this.#silenceMsMax);
  }

  stop(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#silence);
  }

  #waitFor(ms: number): void {
    clearTimeout(this.#silence);
    this.#silence = Number.isFinite(ms)
      ? setTimeout(() => this.#expire(`the agent said nothing for ${seconds(ms)}`, true), ms)
      : undefined;
  }

  #expire(reason: string, retryable: boolean): void {
    this.#fault = new AgentFault(reason, retryable);
    this.#abort.abort(this.#fault);
  }
}
