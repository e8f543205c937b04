import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Measures the CPU time of one test process and of the programs that it starts. */
export class CpuMeter {
  readonly #path = join(tmpdir(), `hopline-cpu-${randomUUID()}`);
  /** Options of Node's test runner for the process. */
  readonly runOptions = {
    env: { ...process.env, TEST_CPU_FILE: this.#path },
    execArgv: ['--import', new URL('cpu-report.ts', import.meta.url).href],
  };

  /** Milliseconds, once the process has ended. Undefined: it was killed, or the system is not Linux. */
  read(): number | undefined {
    try {
      const ms = Number(readFileSync(this.#path, 'utf8'));
      rmSync(this.#path);
      return ms;
    } catch {
      return undefined;
    }
  }
}
