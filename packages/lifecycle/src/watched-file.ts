import { readFile, stat } from 'node:fs/promises';

/** Larger than any file of keys, certificates or settings. */
export const WATCHED_FILE_BYTES_MAX = 1024 * 1024;
/** Shortest interval between two checks of a file. */
const FILE_RECHECK_MS = 1_000;

export type WatchedFileOptions<T> = {
  readonly path: string;
  /** Throws an Error whose message does not quote an invalid file. */
  readonly parse: (text: string) => T;
  /** Called once for each change that makes the file invalid. Its previous content stays in force. */
  readonly onFault: (reason: string) => void;
  /** Shortest interval between two checks in milliseconds, 1000 by default. */
  readonly recheckMs?: number;
};

/** A changed file cannot be used, and its previous content stays in force. The name is the reason at /readyz. */
class PreviousContentInUse extends Error {
  override readonly name = 'previous_content_in_use';
}

/**
 * A file named by a setting, read again after a change. It is checked by its path instead of by file events, because Kubernetes replaces a
 * mounted secret through a symbolic link, which causes no event for the file.
 */
export class WatchedFile<T> {
  readonly #options: WatchedFileOptions<T>;
  #version: string;
  #value: T;
  #checkedMs = performance.now();
  #checking: Promise<void> | undefined;
  #fault: string | undefined;

  private constructor(options: WatchedFileOptions<T>, read: Read<T>) {
    this.#options = options;
    this.#version = read.version;
    this.#value = read.value;
  }

  /** Rejects when the file is unreadable or invalid. */
  static async open<T>(options: WatchedFileOptions<T>): Promise<WatchedFile<T>> {
    return new WatchedFile(options, await read(options));
  }

  /** The last valid content. */
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

  /** Rejects while the file is invalid or cannot be read, so that its last valid content is in force. */
  async check(): Promise<void> {
    await this.current();
    if (this.#fault !== undefined) throw new PreviousContentInUse(this.#fault);
  }

  async #check(): Promise<void> {
    const version = await versionOf(this.#options.path);
    if (version === this.#version) return;
    this.#version = version;
    try {
      const fresh = await read(this.#options);
      this.#version = fresh.version;
      this.#value = fresh.value;
      this.#fault = undefined;
    } catch (error) {
      this.#fault = error instanceof Error ? error.message : 'the file is invalid';
      this.#options.onFault(this.#fault);
    }
  }
}

type Read<T> = { version: string; value: T };

async function read<T>({ path, parse }: WatchedFileOptions<T>): Promise<Read<T>> {
  // Reads the file's version before its content, so that a concurrent write counts as a change.
  const version = await versionOf(path);
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the file cannot be read (${error.code ?? 'unknown'})`);
  });
  if (bytes.length > WATCHED_FILE_BYTES_MAX) throw new Error(`the file is larger than ${WATCHED_FILE_BYTES_MAX} bytes`);
  return { version, value: parse(bytes.toString('utf8')) };
}

async function versionOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found === undefined ? 'none' : `${found.ino}.${found.size}.${found.mtimeNs}`;
}
