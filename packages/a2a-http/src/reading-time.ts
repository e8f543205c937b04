/** Bytes that the client of an export must read within `exportReadMsMax`. By default this is 3.5 kB/s, less than any network provides today. */
export const EXPORT_READ_BYTES_MIN = 1024 * 1024;

/**
 * Measures the time that a client takes to read, without the time in which it waits for the log. The kernel buffers megabytes for a
 * connection, so reads are noticed only in large steps, and a deadline for each line would cut an honest client.
 */
export class ReadingTime {
  readonly #msMax: number;
  #leftMs: number;
  #bytes = 0;
  #sinceMs: number | undefined;

  constructor(msMax: number) {
    this.#msMax = msMax;
    this.#leftMs = msMax;
  }

  /** Records that the client gets `bytes` more to read. Returns the milliseconds within which it must ask for more. */
  begin(bytes: number, nowMs: number): number {
    this.#bytes += bytes;
    this.#sinceMs = nowMs;
    return this.#leftMs;
  }

  /** Records that the client has read those bytes and waits for the log. */
  pause(nowMs: number): void {
    if (this.#sinceMs === undefined) return;
    this.#leftMs -= nowMs - this.#sinceMs;
    this.#sinceMs = undefined;
    if (this.#bytes < EXPORT_READ_BYTES_MIN) return;
    this.#leftMs = this.#msMax;
    this.#bytes = 0;
  }
}

/** The lines of an export. Calls `onTooSlow` when their reader takes longer than `msMax` for EXPORT_READ_BYTES_MIN. */
export function readInTime(lines: AsyncIterable<string>, msMax: number, onTooSlow: () => void): AsyncIterable<string> {
  const rest = lines[Symbol.asyncIterator]();
  const time = new ReadingTime(msMax);
  let timer: NodeJS.Timeout | undefined;
  let hasLeft = false;
  const iterator: AsyncIterator<string> = {
    next: async () => {
      clearTimeout(timer);
      time.pause(performance.now());
      const line = await rest.next();
      // The reader may have left while the log was read.
      if (line.done !== true && !hasLeft)
        timer = setTimeout(onTooSlow, time.begin(Buffer.byteLength(line.value), performance.now()));
      return line;
    },
    return: async () => {
      hasLeft = true;
      clearTimeout(timer);
      return (await rest.return?.()) ?? { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}
