const LF = 0x0a;
/** Length of the longest `retry:` line. */
const LINE_CHARS_MAX = 24;

/**
 * The newest `retry:` of an event stream: the delay that the server requests before a reconnection (WHATWG HTML 9.2.6). Lines may
 * be split over chunks. Lines that end with CR alone are ignored: the value is a hint, and reading every byte takes twice as
 * long.
 */
export class RetryLine {
  ms: number | undefined;
  #line = '';

  async *watch(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.#read(chunk);
      yield chunk;
    }
  }

  #read(chunk: Uint8Array): void {
    let from = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, from)) {
      this.#add(chunk.subarray(from, end));
      const ms = /^retry: ?(\d{1,9})\r?$/.exec(this.#line)?.[1];
      if (ms !== undefined) this.ms = Number(ms);
      this.#line = '';
      from = end + 1;
    }
    this.#add(chunk.subarray(from));
  }

  #add(piece: Uint8Array): void {
    if (this.#line.length < LINE_CHARS_MAX) this.#line += String.fromCharCode(...piece.subarray(0, LINE_CHARS_MAX));
  }
}
