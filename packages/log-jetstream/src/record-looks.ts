import { type RecordMark, taskOfFactsId } from '@hopline/log';

/** Checks from which one request for all is cheaper than a request for each. */
const TOGETHER_MIN = 3;

export type RecordLooksOptions = {
  /** The newest records of tasks. May lack tasks, which are then looked for one by one. */
  newest: (taskIds: readonly string[]) => Promise<ReadonlyMap<string, RecordMark>>;
  /** Looks for one record. */
  isLost: (mark: RecordMark) => Promise<boolean>;
};

type Look = { mark: RecordMark; resolve: (isLost: boolean) => void; reject: (error: unknown) => void };

/**
 * Checks whether the log still has records. The checks of one turn of the event loop share one request: a relay looks for a record of each of its
 * shards at the same time, and for the last record of each task that has ended since the last time.
 */
export class RecordLooks {
  readonly #options: RecordLooksOptions;
  #waiting: Look[] = [];

  constructor(options: RecordLooksOptions) {
    this.#options = options;
  }

  isLost(mark: RecordMark): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#look());
      this.#waiting.push({ mark, resolve, reject });
    });
  }

  #look(): void {
    const looks = this.#waiting;
    this.#waiting = [];
    if (looks.length < TOGETHER_MIN) for (const look of looks) this.#lookFor(look);
    else void this.#together(looks);
  }

  async #together(looks: readonly Look[]): Promise<void> {
    const taskIds = [...new Set(looks.map(({ mark }) => taskOfFactsId(mark.id)))];
    // Without an answer each gets its own, or its own error: the permissions may be those of a version without direct gets.
    const newest = await this.#options.newest(taskIds).catch(() => new Map<string, RecordMark>());
    for (const look of looks) {
      const found = newest.get(taskOfFactsId(look.mark.id));
      if (found?.id === look.mark.id && found.seq === look.mark.seq) look.resolve(false);
      // Its task has a newer record, or the log has lost it.
      else this.#lookFor(look);
    }
  }

  #lookFor({ mark, resolve, reject }: Look): void {
    this.#options.isLost(mark).then(resolve, reject);
  }
}
