type ProcessTime = { ms: number; cpuMs: number | undefined };

/** How long each test process took: a file, or the files of a package. */
export class FileTimes {
  readonly #times = new Map<string, ProcessTime>();

  /** `cpuMs` includes the programs that the process started; undefined: not known. */
  add(name: string, ms: number, cpuMs?: number): void {
    this.#times.set(name, { ms, cpuMs });
  }

  /** A line per process, the slowest first: "   83.1 s   40.2 s of CPU  test/bench/bench.test.ts". */
  slowest(count: number): string[] {
    const files = [...this.#times].sort(([, left], [, right]) => right.ms - left.ms).slice(0, count);
    return files.map(([name, { ms, cpuMs }]) => {
      const cpu = cpuMs === undefined ? '' : `${seconds(cpuMs)} s of CPU  `;
      return `${seconds(ms)} s  ${cpu}${name}`;
    });
  }

  /** CPU milliseconds of all processes together. */
  totalCpuMs(): number {
    return [...this.#times.values()].reduce((sum, { cpuMs = 0 }) => sum + cpuMs, 0);
  }
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1).padStart(7);
}
