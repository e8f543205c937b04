const LF = 0x0a;
const CR = 0x0d;
/** Characters of a line that are looked at; a `retry:` line has no more. */
const LINE_CHARS_MAX = 24;

/** The newest `retry:` of an event stream: how long the server wants a client to wait before it comes back (WHATWG HTML 9.2.6). Chunks may be cut anywhere. */
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
    for (const byte of chunk) {
      if (byte !== LF && byte !== CR) {
        if (this.#line.length < LINE_CHARS_MAX) this.#line += String.fromCharCode(byte);
        continue;
      }
      const ms = /^retry: ?(\d{1,9})$/.exec(this.#line)?.[1];
      if (ms !== undefined) this.ms = Number(ms);
      this.#line = '';
    }
  }
}
