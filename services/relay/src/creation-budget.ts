import type { Writer } from '@hopline/events';

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
  readonly #writers = new Map<Writer, { left: number; atMs: number }>();
  readonly #atOnce: number;

  constructor(atOnce = CREATIONS_AT_ONCE_MAX) {
    this.#atOnce = atOnce;
  }

  /** `storedAt`: epoch milliseconds. */
  admit(writer: Writer, storedAt: number): boolean {
    const budget = this.#writers.get(writer) ?? { left: this.#atOnce, atMs: storedAt };
    this.#writers.set(writer, budget);
    const refilled = (Math.max(0, storedAt - budget.atMs) / 1_000) * CREATIONS_PER_SECOND_MAX;
    budget.left = Math.min(this.#atOnce, budget.left + refilled);
    budget.atMs = Math.max(budget.atMs, storedAt);
    if (budget.left < 1) return false;
    budget.left -= 1;
    return true;
  }
}
