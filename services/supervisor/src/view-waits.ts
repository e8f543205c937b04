/** Waits for conditions on a view, which are checked after every record. */
export class ViewWaits {
  readonly #signal: AbortSignal;
  readonly #waiting = new Set<() => void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => this.check(), { once: true });
  }

  /** Checks all conditions after a change of the view. */
  check(): void {
    for (const check of [...this.#waiting]) check();
  }

  /** Resolves when the condition holds. Rejects when the signal aborts, or with the error of the condition. */
  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = () => {
        try {
          this.#signal.throwIfAborted();
          if (!condition()) return;
          resolve();
        } catch (error) {
          reject(error);
        }
        this.#waiting.delete(check);
      };
      this.#waiting.add(check);
      check();
    });
  }
}
