import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { join } from 'node:path';

/** Most folders that are watched: the agent's folder and those below it, without packages and hidden folders. */
const FOLDERS_MAX = 256;
/** Milliseconds to wait after a change, because an editor writes a file in several steps. */
const SETTLE_MS = 100;
const SOURCE = /\.(?:[cm]?[jt]s|json)$/;

/** Watches the sources below a folder. */
export class SourceWatch {
  readonly #folder: string;
  readonly #watchers = new Map<string, FSWatcher>();
  #timer: NodeJS.Timeout | undefined;
  #changed = new AbortController();

  constructor(folder: string) {
    this.#folder = folder;
    this.#watchFolders();
  }

  /** A signal that aborts at the next change. */
  change(): AbortSignal {
    if (this.#changed.signal.aborted) this.#changed = new AbortController();
    return this.#changed.signal;
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
  }

  #watchFolders(): void {
    const queue = [this.#folder];
    for (const folder of queue) {
      if (queue.length > FOLDERS_MAX) break;
      this.#watch(folder);
      for (const entry of readEntries(folder))
        if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.'))
          queue.push(join(folder, entry.name));
    }
  }

  #watch(folder: string): void {
    if (this.#watchers.has(folder)) return;
    try {
      const watcher = watch(folder, (event, name) => this.#onEvent(event, name));
      watcher.on('error', () => {
        watcher.close();
        this.#watchers.delete(folder);
      });
      this.#watchers.set(folder, watcher);
    } catch {
      // The folder was removed in the meantime.
    }
  }

  #onEvent(event: string, name: string | null): void {
    // Watches a new folder, which the change may have created.
    if (event === 'rename' && name !== null && !SOURCE.test(name)) this.#watchFolders();
    if (name !== null && !SOURCE.test(name)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#changed.abort(), SETTLE_MS);
  }
}

function readEntries(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
