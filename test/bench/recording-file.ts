import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tokenAt } from './tokens.ts';

/** A folder of recordings for recording agents, removed on disposal and at the end of this process. */
export class RecordingFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'hopline-bench-'));
  readonly #remove = () => rmSync(this.path, { recursive: true, force: true });

  constructor() {
    process.on('exit', this.#remove);
  }

  /** Writes a recording of this many tokens; returns its path. */
  write(tokens: number): string {
    const path = join(this.path, `${tokens}.jsonl`);
    writeFileSync(path, Array.from({ length: tokens }, (_, index) => JSON.stringify({ t: tokenAt(index) })).join('\n'));
    return path;
  }

  [Symbol.dispose](): void {
    process.off('exit', this.#remove);
    this.#remove();
  }
}
