/** What the client of an export must read within `exportReadMsMax`, bytes: by default 3.5 kB/s, less than any network of today. */
export const EXPORT_READ_BYTES_MIN = 1024 * 1024;

/**
 * The time that a client takes to read, without that in which it waits for what is read of the log. What it has read is
 * noticed in lumps, as the kernel buffers megabytes for a connection: a bound for each line would cut an honest client.
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

  /** The client reads `bytes` more. Returns within how many milliseconds it must have asked for what follows. */
  begin(bytes: number, nowMs: number): number {
    this.#bytes += bytes;
    this.#sinceMs = nowMs;
    return this.#leftMs;
  }

  /** The client has read them, and waits for the log. */
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
      // The reader may leave while the log is read.
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
