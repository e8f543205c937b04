import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tokenAt } from './tokens.ts';

/** Recordings for recording agents: a folder that is gone when it is disposed of, or when this process ends. */
export class RecordingFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'hopline-bench-'));
  readonly #remove = () => rmSync(this.path, { recursive: true, force: true });

  constructor() {
    process.on('exit', this.#remove);
  }

  /** Full path of a recording of so many tokens. */
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
