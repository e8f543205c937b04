import { lastLogLine } from './log-file.ts';
import { becomesReady } from './readiness.ts';
import type { RunningProcess } from './run-file.ts';
import { type ProcessEvents, type ProcessSpec, SupervisedProcess } from './supervised-process.ts';

/** A service that ended this often before it was ready will not come up by itself. */
const ENDINGS_BEFORE_READY_MAX = 3;
/** How long a process may drain before it is killed. */
const DRAIN_MS_MAX = 8000;
/** Streams are cut first, then no new work, then the running agents, then the writer of facts, then who tells webhooks of them, then their store. */
const DRAIN_ORDER = ['ingress', 'supervisor', 'sub-agent', 'relay', 'notifier', 'nats'];

/** The processes of one local cluster: started, kept alive, drained in order. */
export class Cluster {
  readonly #processes: SupervisedProcess[] = [];
  readonly #events: ProcessEvents;

  constructor(events: ProcessEvents) {
    this.#events = events;
  }

  /** Starts a process and resolves with it, running or about to be started again. */
  async run(spec: ProcessSpec): Promise<SupervisedProcess> {
    const process = new SupervisedProcess(spec, this.#events);
    this.#processes.push(process);
    await process.start();
    return process;
  }

  /** What runs now, as `run.json` lists it. */
  running(): RunningProcess[] {
    return this.#processes.flatMap(({ pid, url, spec }) =>
      pid === null ? [] : [{ service: spec.service, instance: spec.instance, pid, url }],
    );
  }

  /** Ends everything, one kind after the other; resolves when no process is left. `forced` hears of each that had to be killed. */
  async drain(forced: (instance: string) => void, graceMs = DRAIN_MS_MAX): Promise<void> {
    for (const service of DRAIN_ORDER) {
      const group = this.#processes.filter(({ spec }) => spec.service === service);
      await Promise.all(
        group.map(async process => {
          if (await process.stop(graceMs)) forced(process.spec.instance);
        }),
      );
    }
  }

  /** Ends everything at once. */
  kill(): void {
    for (const process of this.#processes) process.kill();
  }
}

/** Waits for a process to be ready. @returns null, or the sentence that says what is wrong with it. */
export async function waitReady(
  process: SupervisedProcess,
  probe: () => Promise<boolean>,
  msMax: number,
): Promise<string | null> {
  const isHopeless = () => process.hasGivenUp || process.endings >= ENDINGS_BEFORE_READY_MAX;
  if (await becomesReady(probe, msMax, isHopeless)) return null;
  const { instance, logPath } = process.spec;
  const line = lastLogLine(logPath);
  const state = isHopeless() ? 'cannot start' : `is not ready after ${msMax / 1000} s`;
  return `${instance} ${state}; the last line of ${logPath}: ${line === '' ? '(nothing)' : line}`;
}
