import { readFile, stat } from 'node:fs/promises';

/** A larger file is none of keys, certificates or settings; bytes. */
export const WATCHED_FILE_BYTES_MAX = 1024 * 1024;
/** How often a file is looked at, at most; milliseconds. */
const FILE_RECHECK_MS = 1_000;

export interface WatchedFileOptions<T> {
  readonly path: string;
  /** Throws an Error of one sentence without a word of the file when it does not fit. */
  readonly parse: (text: string) => T;
  /** The file has changed and cannot be used: what it said before stays in force. Called once for each change. */
  readonly onFault: (reason: string) => void;
  /** How often the file is looked at, at most; milliseconds. A second by default. */
  readonly recheckMs?: number;
}

/**
 * A file that a setting names, read anew when it has changed. It is looked at by its path and not by the system's file events: a mounted Kubernetes
 * secret is swapped by a link, which events of the file itself do not show.
 */
export class WatchedFile<T> {
  readonly #options: WatchedFileOptions<T>;
  #version: string;
  #value: T;
  #checkedMs = performance.now();
  #checking: Promise<void> | undefined;

  private constructor(options: WatchedFileOptions<T>, read: Read<T>) {
    this.#options = options;
    this.#version = read.version;
    this.#value = read.value;
  }

  /** Rejects with an Error of one sentence when the file cannot be used now. */
  static async open<T>(options: WatchedFileOptions<T>): Promise<WatchedFile<T>> {
    return new WatchedFile(options, await read(options));
  }

  /** What the file said when it last fitted. */
  async current(): Promise<T> {
    const { recheckMs = FILE_RECHECK_MS } = this.#options;
    if (this.#checking === undefined && performance.now() - this.#checkedMs >= recheckMs) {
      this.#checking = this.#check().finally(() => {
        this.#checkedMs = performance.now();
        this.#checking = undefined;
      });
    }
    await this.#checking;
    return this.#value;
  }

  async #check(): Promise<void> {
    const version = await versionOf(this.#options.path);
    if (version === this.#version) return;
    this.#version = version;
    try {
      const fresh = await read(this.#options);
      this.#version = fresh.version;
      this.#value = fresh.value;
    } catch (error) {
      this.#options.onFault(error instanceof Error ? error.message : 'it cannot be used');
    }
  }
}

type Read<T> = { version: string; value: T };

async function read<T>({ path, parse }: WatchedFileOptions<T>): Promise<Read<T>> {
  // The version is that of before the reading: what is written meanwhile is seen as a change.
  const version = await versionOf(path);
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the file cannot be read (${error.code ?? 'unknown'})`);
  });
  if (bytes.length > WATCHED_FILE_BYTES_MAX) throw new Error(`the file is larger than ${WATCHED_FILE_BYTES_MAX} bytes`);
  return { version, value: parse(bytes.toString('utf8')) };
}

async function versionOf(path: string): Promise<string> {
  const seen = await stat(path, { bigint: true }).catch(() => undefined);
  return seen === undefined ? 'none' : `${seen.ino}.${seen.size}.${seen.mtimeNs}`;
}
