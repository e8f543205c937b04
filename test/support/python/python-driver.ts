import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { PYTHON_PACKAGE } from './python-with-httpx.ts';

const DRIVER = fileURLToPath(new URL('driver.py', import.meta.url));

/** What the driver prints while it asks. */
export type Progress = { length: number; taskId: string };

/** A Python process with the client, which answers one request at a time (driver.py). */
export class PythonDriver implements AsyncDisposable {
  readonly #child;
  readonly #exited;
  readonly #lines;

  constructor(python: string) {
    this.#child = spawn(python, [DRIVER], { env: pythonEnv(), stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exited = once(this.#child, 'exit');
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async call<T>(call: string, params: object = {}, onProgress: (progress: Progress) => void = () => {}): Promise<T> {
    this.#child.stdin.write(`${JSON.stringify({ call, ...params })}\n`);
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error(`the Python driver ended in a call of ${call}`);
      const line = JSON.parse(value) as Progress | { result: T };
      if ('result' in line) return line.result;
      onProgress(line);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#exited;
  }
}

/** The environment in which a Python imports packages/python from its sources. */
export function pythonEnv(): NodeJS.ProcessEnv {
  return { ...process.env, PYTHONPATH: join(PYTHON_PACKAGE, 'src'), PYTHONWARNINGS: 'error' };
}
