import { isTerminal } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { costsOf, readTaskPaths, TaskTooLong } from '@hopline/task-audit';
import { type HopMetrics, type Logger, taskLogger } from '@hopline/telemetry';
import type { StoredChange } from './pipeline-context.ts';

/** Least milliseconds between two measurements. */
export const PATH_PAUSE_MS = 1_000;
/** A pause lasts this many times as long as the preceding measurement, so that measuring takes at most 2 % of a relay's time. */
const PAUSE_FACTOR = 50;
/** Maximum number of records of facts and inputs of a measured task. */
export const PATH_RECORDS_MAX = 5_000;
/** Maximum bytes of the fact records of a measured task in the log. Parsed, they take several times as much of a heap of 300 MiB. */
export const PATH_FACT_BYTES_MAX = 16 * 1024 * 1024;
/** Bytes of inputs of a task that is measured. */
export const PATH_INPUT_BYTES_MAX = 4 * 1024 * 1024;

const LIMITS = { recordsMax: PATH_RECORDS_MAX, factBytesMax: PATH_FACT_BYTES_MAX, inputBytesMax: PATH_INPUT_BYTES_MAX };

type PathMeasurementOptions = {
  log: Pick<Log, 'inputs' | 'facts'>;
  metrics: Pick<HopMetrics, 'pathTime' | 'pathTurns'>;
  logger: Logger;
  now: () => number;
  /** Default PATH_PAUSE_MS. */
  pauseMs?: number | undefined;
};

type EndedTurn = { taskId: string; turn: number; generation: number };

/**
 * Measures how much of the time from question to end each hop delayed a turn. It reads an ended turn from the log, as `hopline trace` does,
 * so that both have the same figures, and a takeover or the death of an agent is a hop like any other. It measures one turn at a time,
 * namely the last one that ended during a pause, because a sample of turns is enough for the shares of the hops.
 */
export class PathMeasurement {
  readonly #options: PathMeasurementOptions;
  #next: EndedTurn | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isMeasuring = false;
  #isStopped = false;
  #pauseMs: number;

  constructor(options: PathMeasurementOptions) {
    this.#options = options;
    this.#pauseMs = this.#pauseMsMin;
  }

  /** Called when a record is stored. */
  stored({ facts, aggregate, storedBytes }: StoredChange): void {
    const { taskId, turn, generation } = aggregate;
    const hasEnded = facts.some(fact => {
      if (fact.kind !== 'status.changed') return false;
      const { state } = fact.event.statusUpdate.status;
      return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED';
    });
    if (!hasEnded || this.#isStopped) return;
    if (storedBytes > PATH_FACT_BYTES_MAX) {
      this.#options.metrics.pathTurns.add(1, { outcome: 'too_long' });
      return;
    }
    if (this.#next !== undefined) this.#options.metrics.pathTurns.add(1, { outcome: 'skipped' });
    this.#next = { taskId, turn, generation };
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  get #pauseMsMin(): number {
    return this.#options.pauseMs ?? PATH_PAUSE_MS;
  }

  #schedule(): void {
    if (this.#isStopped || this.#isMeasuring || this.#timer !== undefined || this.#next === undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#measureNext();
    }, this.#pauseMs).unref();
  }

  async #measureNext(): Promise<void> {
    const { metrics, logger, now } = this.#options;
    const ended = this.#next!;
    this.#next = undefined;
    this.#isMeasuring = true;
    const begunMs = now();
    const outcome = await this.#measure(ended).catch((thrown: unknown) => {
      if (thrown instanceof TaskTooLong) return 'too_long' as const;
      if (!this.#isStopped) taskLogger(logger, ended.taskId).warn({ err: thrown }, 'critical path could not be measured');
      return 'failed' as const;
    });
    this.#isMeasuring = false;
    if (this.#isStopped) return;
    metrics.pathTurns.add(1, { outcome });
    this.#pauseMs = Math.max(this.#pauseMsMin, PAUSE_FACTOR * (now() - begunMs));
    this.#schedule();
  }

  async #measure({ taskId, turn, generation }: EndedTurn): Promise<'measured' | 'incomplete'> {
    const { log, metrics } = this.#options;
    const paths = await readTaskPaths(log, taskId, LIMITS);
    const path = paths?.turns.find(one => one.turn === turn);
    // A lagging replica answers without the end of the turn.
    if (paths === undefined || path === undefined || paths.generation < generation) return 'incomplete';
    for (const { hop, agent, ms } of costsOf([path])) metrics.pathTime.add(ms / 1_000, { hop, agent });
    return 'measured';
  }
}
