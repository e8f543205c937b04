/** Waits for what the log will say: conditions on a view, looked at after every record. */
export class ViewWaits {
  readonly #signal: AbortSignal;
  readonly #waiting = new Set<() => void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', () => this.look(), { once: true });
  }

  /** The view has changed. */
  look(): void {
    for (const look of [...this.#waiting]) look();
  }

  /** Resolves when the condition holds, at once if it does; rejects when the signal aborts, or with what the condition throws. */
  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        try {
          this.#signal.throwIfAborted();
          if (!condition()) return;
          resolve();
        } catch (error) {
          reject(error);
        }
        this.#waiting.delete(look);
      };
      this.#waiting.add(look);
      look();
    });
  }
}
