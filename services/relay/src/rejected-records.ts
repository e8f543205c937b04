import type { Writer } from '@hopline/events';
import type { RejectedInput } from '@hopline/log';
import { type HopMetrics, inTrace, LINE, type Logger, snakeWord, taskLogger } from '@hopline/telemetry';

/**
 * A rejected record. `malformed input`: the relay read the record, but not one of its inputs. `not applicable`: it failed to apply the record.
 * `too many tasks`: see CreationBudget. `too many unknown tasks`: see UnknownTasks.
 * `error`: only its name is logged, never its message.
 */
export type RejectedRecord = Omit<RejectedInput, 'fault'> & {
  fault: RejectedInput['fault'] | 'malformed input' | 'not applicable' | 'too many tasks' | 'too many unknown tasks';
  /** Whose input it is, if that is known. */
  writer?: Writer;
  error?: unknown;
};

/** Maximum number of log lines for rejected records per minute and relay. The metric counts all rejected records. */
export const REJECTED_LINES_PER_MINUTE_MAX = 60;
const MINUTE_MS = 60_000;

/**
 * Makes rejected records visible: a metric by reason, and a log line with the sequence of each. The line replaces a dead letter: the record
 * itself stays in the input log, where it can be found by its sequence until retention removes it. A copy elsewhere would need a bound, an
 * owner and protection of its own.
 */
export class RejectedRecords {
  readonly #metrics: Pick<HopMetrics, 'recordsRejected'>;
  readonly #logger: Logger;
  readonly #now: () => number;
  #minute = 0;
  #lines = 0;

  constructor(metrics: Pick<HopMetrics, 'recordsRejected'>, logger: Logger, now: () => number = () => performance.now()) {
    this.#metrics = metrics;
    this.#logger = logger;
    this.#now = now;
  }

  add({ seq, taskId, fault, error, trace, writer }: RejectedRecord): void {
    const reason = snakeWord(fault);
    this.#metrics.recordsRejected.add(1, { reason });
    const minute = Math.floor(this.#now() / MINUTE_MS);
    const suppressed = minute === this.#minute ? 0 : Math.max(0, this.#lines - REJECTED_LINES_PER_MINUTE_MAX);
    if (minute !== this.#minute) this.#lines = 0;
    this.#minute = minute;
    this.#lines += 1;
    if (this.#lines > REJECTED_LINES_PER_MINUTE_MAX) return;
    const fields = {
      raw_seq: seq,
      reason,
      ...(writer !== undefined && { writer }),
      ...(error instanceof Error && { code: error.name }),
    };
    const logger = taskLogger(this.#logger, taskId);
    inTrace(trace, () => logger.warn({ ...fields, ...(suppressed > 0 && { suppressed }) }, LINE.inputRejected));
  }
}
