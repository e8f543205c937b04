import { type RecordMark, taskOfFactsId } from '@hopline/log';

/** Number of checks from which on one shared request is cheaper than a request for each. */
const TOGETHER_MIN = 3;

type RecordChecksOptions = {
  /** The newest records of tasks. It may lack some tasks, which are then checked one by one. */
  newest: (taskIds: readonly string[]) => Promise<ReadonlyMap<string, RecordMark>>;
  /** Checks one record. */
  isLost: (mark: RecordMark) => Promise<boolean>;
};

type Check = { mark: RecordMark; resolve: (isLost: boolean) => void; reject: (error: unknown) => void };

/**
 * Checks whether the log still has certain records. The checks of one turn of the event loop share one request, because a relay checks all
 * its shards at the same time: a record of each shard, and the last record of each task that has ended since the previous check.
 */
export class RecordChecks {
  readonly #options: RecordChecksOptions;
  #waiting: Check[] = [];

  constructor(options: RecordChecksOptions) {
    this.#options = options;
  }

  isLost(mark: RecordMark): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#check());
      this.#waiting.push({ mark, resolve, reject });
    });
  }

  #check(): void {
    const checks = this.#waiting;
    this.#waiting = [];
    if (checks.length < TOGETHER_MIN) for (const check of checks) this.#checkOne(check);
    else void this.#checkTogether(checks);
  }

  async #checkTogether(checks: readonly Check[]): Promise<void> {
    const taskIds = [...new Set(checks.map(({ mark }) => taskOfFactsId(mark.id)))];
    // Without an answer each check makes its own request, which fails with its own error: the permissions may be those of a version without
    // direct gets.
    const newest = await this.#options.newest(taskIds).catch(() => new Map<string, RecordMark>());
    for (const check of checks) {
      const found = newest.get(taskOfFactsId(check.mark.id));
      if (found?.id === check.mark.id && found.seq === check.mark.seq) check.resolve(false);
      // Either the task has a newer record, or the log has lost this one.
      else this.#checkOne(check);
    }
  }

  #checkOne({ mark, resolve, reject }: Check): void {
    this.#options.isLost(mark).then(resolve, reject);
  }
}
