import { LogUnavailable } from '@hopline/log';
import type { LogNames } from './names.ts';

/** How long a failure counts while nothing else is published to its stream. An older failure proves nothing. */
export const FAILURE_KEPT_MS = 60_000;

/**
 * Whether the streams store what this process publishes. A server with a full disk answers every request except appends, so no request
 * detects it, and a probe that writes would fill the disk further. So this class uses the results of the publishes themselves.
 */
export class AppendHealth {
  readonly #names: () => LogNames;
  readonly #now: () => number;
  /** Time of the newest failure by stream. Removed once the stream has stored something. */
  readonly #failures = new Map<string, number>();

  constructor(names: () => LogNames, now: () => number = () => performance.now()) {
    this.#names = names;
    this.#now = now;
  }

  stored(subject: string): void {
    if (this.#failures.size > 0) this.#failures.delete(this.#names().streamOf(subject));
  }

  failed(subject: string): void {
    this.#failures.set(this.#names().streamOf(subject), this.#now());
  }

  /** Throws LogUnavailable if the newest publish to a stream was not stored. */
  check(): void {
    for (const [stream, failedAt] of this.#failures) {
      if (this.#now() - failedAt < FAILURE_KEPT_MS) throw new LogUnavailable(`${stream} stores no records`);
      this.#failures.delete(stream);
    }
  }
}
