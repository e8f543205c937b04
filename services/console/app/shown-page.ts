/** How long a hidden page keeps its streams, so that a short look at another tab changes nothing. */
export const HIDDEN_MS_MAX = 10_000;

/**
 * Streams that are open only while the page is shown: over HTTP/1.1 a browser has six connections to a server over all its tabs, and the tabs of six
 * running tasks would take all of them. A stream that is opened again continues after its cursor.
 */
export class ShownPage {
  readonly #signal: AbortSignal;
  #hidden = new AbortController();
  #return = Promise.withResolvers<void>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Lasts until the signal aborts. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    // A tab that was opened in the background has not been looked at yet.
    if (document.hidden) this.#hidden.abort();
    else this.#return.resolve();
    document.addEventListener('visibilitychange', () => this.#changed(), { signal });
    signal.addEventListener('abort', () => {
      clearTimeout(this.#timer);
      this.#return.resolve();
    });
  }

  /** Opens a stream as soon as the page is shown. Its signal aborts when the page has been hidden for HIDDEN_MS_MAX. */
  async open<T>(open: (signal: AbortSignal) => Promise<T>): Promise<T> {
    await this.#return.promise;
    this.#signal.throwIfAborted();
    return open(AbortSignal.any([this.#signal, this.#hidden.signal]));
  }

  #changed(): void {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#leave(), HIDDEN_MS_MAX);
    else if (this.#hidden.signal.aborted) {
      this.#hidden = new AbortController();
      this.#return.resolve();
    }
  }

  #leave(): void {
    this.#return = Promise.withResolvers();
    this.#hidden.abort();
  }
}
