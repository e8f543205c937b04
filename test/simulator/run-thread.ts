import { once } from 'node:events';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import type { Scenario } from './scenario.ts';
import { type Run, simulate } from './simulate.ts';

/**
 * A thread that runs scenarios. The runner of node:test observes every promise of its own thread with an async hook, which doubles the CPU time
 * of a run.
 */
export class RunThread {
  readonly #worker = new Worker(new URL(import.meta.url));

  /** Like `simulate`, it allows one run at a time. */
  async run(scenario: Scenario): Promise<Run> {
    this.#worker.postMessage(scenario);
    // Rejects if the thread throws.
    const [run] = await once(this.#worker, 'message');
    return run;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}

if (!isMainThread) parentPort?.on('message', async (scenario: Scenario) => parentPort?.postMessage(await simulate(scenario)));
