import { relative } from 'node:path';

/** How long each test file took. */
export class FileTimes {
  readonly #root: string;
  readonly #ms = new Map<string, number>();

  constructor(root: string) {
    this.#root = root;
  }

  add(file: string, durationMs: number): void {
    this.#ms.set(relative(this.#root, file), durationMs);
  }

  /** A line per file, the slowest first: "   83.1 s  test/bench/bench.test.ts". */
  slowest(count: number): string[] {
    const files = [...this.#ms].sort(([, left], [, right]) => right - left).slice(0, count);
    return files.map(([path, ms]) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${path}`);
  }
}
