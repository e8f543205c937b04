import type { Writer } from '@hopline/events';

/**
 * Tasks of one writer that wait to be looked for in the log. An agent names tasks that are not open when its turns were canceled or replaced:
 * one for each turn that it runs, at most.
 */
export const UNKNOWN_TASKS_MAX = 1_024;
/** Bytes of their inputs: less than what makes the shards of a relay pause (RELAY_WAITING_UNITS_MAX). */
export const UNKNOWN_BYTES_MAX = 4 * 1024 * 1024;

type Look = { run: () => Promise<void>; bytes: number };

/** A task that waits for its look. */
export type UnknownTask = {
  /** Takes another input of the task. False: the inputs of its writer are too large together. */
  add(bytes: number): boolean;
};

/**
 * Looks in the log for tasks that agents name in their inputs and that are not among the open tasks of this relay: nearly always they have ended, and
 * the inputs are rejected. A look costs some five requests. Without a limit, 4,000 inputs a second with invented ids, which the login of any agent may
 * publish, kept all questions of the cluster waiting and filled the memory of the relay within a minute. So the looks for one writer happen one after
 * another, and a writer for which too many wait gets no further ones (ADR 283).
 */
export class UnknownTasks {
  readonly #writers = new Map<Writer, { looks: Look[]; bytes: number }>();

  /** Undefined, and `run` is never called, if too many tasks of the writer wait. `run` must not reject. */
  admit(writer: Writer, bytes: number, run: () => Promise<void>): UnknownTask | undefined {
    const waiting = this.#writers.get(writer) ?? { looks: [], bytes: 0 };
    if (waiting.looks.length >= UNKNOWN_TASKS_MAX || waiting.bytes + bytes > UNKNOWN_BYTES_MAX) return undefined;
    const look = { run, bytes };
    waiting.bytes += bytes;
    // The look stays in the list while it is in progress, so that its writer has no second one.
    if (waiting.looks.push(look) === 1) {
      this.#writers.set(writer, waiting);
      void this.#run(writer, waiting);
    }
    const add = (more: number) => {
      if (waiting.bytes + more > UNKNOWN_BYTES_MAX) return false;
      look.bytes += more;
      waiting.bytes += more;
      return true;
    };
    return { add };
  }

  async #run(writer: Writer, waiting: { looks: Look[]; bytes: number }): Promise<void> {
    for (let look = waiting.looks[0]; look !== undefined; look = waiting.looks[0]) {
      await look.run();
      waiting.looks.shift();
      waiting.bytes -= look.bytes;
    }
    this.#writers.delete(writer);
  }
}
