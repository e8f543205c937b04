import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { importedFiles } from './imported-files.ts';

/** Maximum number of folders that are watched: the agent's folder and those below it, without packages and hidden folders. */
const FOLDERS_MAX = 256;
/** Milliseconds to wait after a change, because an editor writes a file in several steps. */
const SETTLE_MS = 100;
const CODE = /\.[cm]?[jt]s$/;

/**
 * Whether a change of a file restarts the agent of `module`: a change of code does, and of JSON that the module imports. The agent may
 * write other JSON files itself, and would then restart again and again.
 */
export function isSource(path: string, module: string): boolean {
  if (CODE.test(path)) return true;
  if (!path.endsWith('.json')) return false;
  return basename(path) === 'package.json' || importedFiles(module).has(resolve(path));
}

/** Watches the sources of an agent, in the folder of its module and below. */
export class SourceWatch {
  readonly #module: string;
  readonly #watchers = new Map<string, FSWatcher>();
  #timer: NodeJS.Timeout | undefined;
  #changed = new AbortController();

  constructor(module: string) {
    this.#module = resolve(module);
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
    const queue = [dirname(this.#module)];
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
      const watcher = watch(folder, (event, name) => this.#onEvent(event, name === null ? undefined : join(folder, name)));
      watcher.on('error', () => {
        watcher.close();
        this.#watchers.delete(folder);
      });
      this.#watchers.set(folder, watcher);
    } catch {
      // The folder was removed in the meantime.
    }
  }

  /** `path`: undefined where the system does not name the file. */
  #onEvent(event: string, path: string | undefined): void {
    const isOther = path !== undefined && !isSource(path, this.#module);
    // Watches a new folder, which the change may have created.
    if (event === 'rename' && isOther) this.#watchFolders();
    if (isOther) return;
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
