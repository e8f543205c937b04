import type { Writer } from '@hopline/events';
import { TokenBucket } from '@hopline/log';

/** Tasks that the server of one agent may begin in a second, on average, at one relay: about as many as a relay creates on one core. */
export const CREATIONS_PER_SECOND_MAX = 2_000;
/** The same at once after a pause: more than one caller may have open (HOPLINE_OWNER_OPEN_TASKS_MAX). */
export const CREATIONS_AT_ONCE_MAX = 16_384;

/**
 * Limits the messages with which agents begin tasks of their own role, as their own servers do when clients ask them directly. Questions that ingress
 * has accepted are not limited here. The login of an agent may publish 20,000 such messages in a second, and a task costs some eight writes: without a
 * limit, a minute of that flood kept a relay busy for many minutes after it. A message beyond the limit is lost to its client, so the limit is above
 * what servers of agents can need.
 *
 * The clock is the time at which the log has stored the messages, so a relay that reads an old backlog rejects none of it.
 */
export class CreationBudget {
  readonly #writers = new Map<Writer, TokenBucket>();
  readonly #burst: number;
  #newestAt = 0;

  constructor(burst = CREATIONS_AT_ONCE_MAX) {
    this.#burst = burst;
  }

  /** `storedAt`: epoch milliseconds. The shards of a relay read at different paces, so an earlier time counts as the newest one. */
  admit(writer: Writer, storedAt: number): boolean {
    this.#newestAt = Math.max(this.#newestAt, storedAt);
    const rate = { perSecond: CREATIONS_PER_SECOND_MAX, burst: this.#burst };
    const bucket = this.#writers.get(writer) ?? new TokenBucket(rate, this.#newestAt);
    this.#writers.set(writer, bucket);
    if (bucket.waitMs(1, this.#newestAt) > 0) return false;
    bucket.take(1, this.#newestAt);
    return true;
  }
}
