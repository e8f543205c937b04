import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killProcessTree } from './process-tree.ts';

/** Measures the CPU time of one test process and of the programs that it starts, and ends them. Node's runner shows none of its processes. */
export class TestProcess {
  readonly #path = join(tmpdir(), `hopline-test-${randomUUID()}`);
  /** Options of Node's test runner for the process. */
  readonly runOptions = {
    env: { ...process.env, TEST_REPORT_FILE: this.#path },
    execArgv: ['--import', new URL('process-report.ts', import.meta.url).href],
  };

  /** CPU milliseconds, once the process has ended. Undefined if it was killed, or if the system is not Linux. */
  cpuMs(): number | undefined {
    const ms = this.#report()[1];
    rmSync(this.#path, { force: true });
    return ms;
  }

  /**
   * SIGKILL for the process and the programs that it started. Node's runner sends SIGTERM, which a process handles too late, or never, when one
   * of its hooks waits.
   */
  kill(): void {
    const pid = this.#report()[0];
    if (pid !== undefined) killProcessTree(pid);
  }

  /** The id of the process and, at its end, its CPU milliseconds. */
  #report(): number[] {
    try {
      return readFileSync(this.#path, 'utf8').trim().split(' ').map(Number);
    } catch {
      return [];
    }
  }
}
