/** Most items that are buffered before they are read. */
const READ_AHEAD_MAX = 1_024;

/** Reads a stream in arrays of the items that arrive in one turn of the event loop, because each step of a stream costs more than a token. */
export class Arrivals<T> {
  readonly #reader: ReadableStreamDefaultReader<T>;
  #items: T[] = [];
  #arrived = Promise.withResolvers<void>();
  #isReading = false;
  #hasEnded = false;
  #failure: { error: unknown } | undefined;

  constructor(stream: ReadableStream<T>) {
    this.#reader = stream.getReader();
  }

  /** Resolves with undefined at the end. Rejects with the error of the stream, after all items before the error. */
  async next(): Promise<T[] | undefined> {
    if (!this.#isReading && !this.#hasEnded) this.#read();
    await this.#arrived.promise;
    const items = this.#items;
    if (items.length > 0) {
      this.#items = [];
      if (!this.#hasEnded) this.#arrived = Promise.withResolvers();
      return items;
    }
    if (this.#failure !== undefined) throw this.#failure.error;
    return undefined;
  }

  /** Ends the stream, even while `next` waits. */
  async cancel(reason?: unknown): Promise<void> {
    await this.#reader.cancel(reason);
  }

  #read(): void {
    this.#isReading = true;
    this.#reader.read().then(
      ({ done, value }) => {
        if (done) return this.#end();
        this.#items.push(value);
        if (this.#items.length === 1) setImmediate(this.#arrived.resolve);
        if (this.#items.length < READ_AHEAD_MAX) this.#read();
        else this.#isReading = false;
      },
      error => {
        this.#failure = { error };
        this.#end();
      },
    );
  }

  #end(): void {
    this.#hasEnded = true;
    this.#arrived.resolve();
  }
}
