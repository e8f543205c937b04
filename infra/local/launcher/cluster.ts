import type { ListedProcess } from '@hopline/local-cluster';
import { becomesReady } from './readiness.ts';
import { type ProcessEvents, type ProcessSpec, SupervisedProcess } from './supervised-process.ts';

/** A service that exits this many times before it is ready cannot start. */
const EXITS_BEFORE_READY_MAX = 3;
/** A process that drains for longer is killed. */
const DRAIN_MS_MAX = 8000;
/** Services that accept clients and new work drain first, then agents, the writer of facts, webhook deliveries, and finally the store. */
const DRAIN_ORDER = ['console', 'ingress', 'supervisor', 'sub-agent', 'relay', 'notifier', 'nats'];

/** Starts, restarts and drains the processes of one local cluster in order. */
export class Cluster {
  readonly #processes: SupervisedProcess[] = [];
  readonly #events: ProcessEvents;

  constructor(events: ProcessEvents) {
    this.#events = events;
  }

  /** Starts a process. Also resolves when its first start failed and a restart is scheduled. */
  async run(spec: ProcessSpec): Promise<SupervisedProcess> {
    const process = new SupervisedProcess(spec, this.#events);
    this.#processes.push(process);
    await process.start();
    return process;
  }

  /** All processes, as listed in `run.json`; `pid` is null while a process is not running. */
  list(): ListedProcess[] {
    return this.#processes.map(({ pid, url, spec, restarts, ending }) => {
      const { service, instance, agent } = spec;
      return { service, instance, pid, url, restarts, ...(ending !== '' && { ending }), ...(agent && { agent }) };
    });
  }

  /**
   * Drains the processes in DRAIN_ORDER and resolves when none is left. Calls `onKilled` for each process that had to be killed.
   */
  async drain(onKilled: (instance: string) => void, graceMs = DRAIN_MS_MAX): Promise<void> {
    for (const service of DRAIN_ORDER) {
      const group = this.#processes.filter(({ spec }) => spec.service === service);
      await Promise.all(
        group.map(async process => {
          if (await process.stop(graceMs)) onKilled(process.spec.instance);
        }),
      );
    }
  }

  /** Kills one process as a fault would. Resolves with a sentence if nothing was killed, otherwise when it has ended. */
  async crash(instance: string): Promise<string | undefined> {
    const process = this.#processes.find(({ spec }) => spec.instance === instance);
    if (process === undefined) return `no process of this cluster is named ${instance}`;
    return (await process.crash()) ? undefined : `${instance} is not running`;
  }

  /** Kills all processes at once. */
  kill(): void {
    for (const process of this.#processes) process.kill();
  }
}

/**
 * Waits until a process is ready, or until `isOver`.
 * @returns null, or the fault as a sentence that the process itself reported
 */
export async function waitReady(
  process: SupervisedProcess,
  probe: () => Promise<boolean>,
  msMax: number,
  isOver: () => boolean = () => false,
): Promise<string | null> {
  const cannotStart = () => process.isFinal || process.exits >= EXITS_BEFORE_READY_MAX;
  if (await becomesReady(probe, msMax, () => cannotStart() || isOver())) return null;
  const { instance, logPath } = process.spec;
  const { fault } = process;
  if (process.isFinal && fault !== '') return fault;
  const state = cannotStart() ? `cannot start (${process.ending})` : `is not ready after ${msMax / 1000} s`;
  return `${instance} ${state}: ${fault === '' ? 'it wrote nothing' : fault} (log: ${logPath})`;
}
