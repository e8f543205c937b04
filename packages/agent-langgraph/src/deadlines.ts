import { GraphFault } from './graph.ts';

export type Limits = {
  /** A graph may say nothing for, milliseconds: a node that works in silence, a model that thinks. */
  silenceMsMax: number;
  /** A turn may take in all, milliseconds. */
  totalMsMax: number;
};

export const LANGGRAPH_LIMITS: Limits = { silenceMsMax: 300_000, totalMsMax: 3_600_000 };

/** Aborts a run that is silent for too long, takes too long in all, or whose turn is over. `fault` says which of the first two. */
export class Deadlines implements Disposable {
  readonly signal: AbortSignal;
  readonly #abort = new AbortController();
  readonly #silence: NodeJS.Timeout;
  readonly #total: NodeJS.Timeout;
  #fault: GraphFault | undefined;
  #readerIsBusy = false;

  constructor({ silenceMsMax, totalMsMax }: Limits, turn: AbortSignal) {
    this.signal = AbortSignal.any([turn, this.#abort.signal]);
    this.#silence = setTimeout(() => {
      if (this.#readerIsBusy) this.#silence.refresh();
      else this.#expire(`the graph said nothing for ${silenceMsMax / 1000} s`);
    }, silenceMsMax);
    this.#total = setTimeout(() => this.#expire(`the turn took longer than ${totalMsMax / 1000} s`), totalMsMax);
  }

  get fault(): GraphFault | undefined {
    return this.#fault;
  }

  /** The graph said something. */
  touch(): void {
    this.#silence.refresh();
  }

  /** Silence while nobody listens is not the graph's. */
  reading(isBusy: boolean): void {
    this.#readerIsBusy = isBusy;
    if (!isBusy) this.#silence.refresh();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#total);
  }

  #expire(reason: string): void {
    this.#fault ??= new GraphFault(reason);
    this.#abort.abort();
  }
}
