/** How long each test process took: a file, or the files of a package. */
export class FileTimes {
  readonly #ms = new Map<string, number>();

  add(name: string, durationMs: number): void {
    this.#ms.set(name, durationMs);
  }

  /** A line per process, the slowest first: "   83.1 s  test/bench/bench.test.ts". */
  slowest(count: number): string[] {
    const files = [...this.#ms].sort(([, left], [, right]) => right - left).slice(0, count);
    return files.map(([name, ms]) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${name}`);
  }
}
