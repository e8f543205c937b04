import { LogUnavailable } from '@hopline/log';

/** A tenant, or a caller without one (`tenantTokenOf`). Undefined: a reader of the cluster itself, or a caller of a server without tenants. */
export type Party = string | undefined;

/** `ms`: longest wait of a reader for its slot: its caller may have left, and those behind it would wait for its answer. `what`: begins the error. */
export type WaitLimit = { ms: number; what: string };

type Waiting = { party: Party; grant: () => void };

/**
 * Waiting readers. Parties take turns, and each party's readers are served in the order of their arrival. A party therefore waits for one
 * read of each other party, however many reads that party has queued.
 */
export class TurnQueue {
  /** The parties, in the order of their next turns. */
  readonly #waiting = new Map<Party, Waiting[]>();

  push(party: Party, grant: () => void): void {
    const others = this.#waiting.get(party);
    if (others === undefined) this.#waiting.set(party, [{ party, grant }]);
    else others.push({ party, grant });
  }

  /** Removes and returns the next reader of the parties for which `mayHave` is true. */
  shift(mayHave: (party: Party) => boolean = () => true): Waiting | undefined {
    for (const [party, waiting] of this.#waiting) {
      if (!mayHave(party)) continue;
      const next = waiting.shift();
      this.#waiting.delete(party);
      if (waiting.length > 0) this.#waiting.set(party, waiting);
      return next;
    }
    return undefined;
  }
}

/** Slots that parties share. One party may take only a part of them, so that others find one free. */
export class PartySlots {
  readonly #partyShare: number;
  #slots = 0;
  #partySlots = 0;
  readonly #queue = new TurnQueue();
  readonly #taken = new Map<Party, number>();
  #takenCount = 0;

  constructor(slots: number, partyShare: number) {
    this.#partyShare = partyShare;
    this.resize(slots);
  }

  /** With fewer slots than are taken, the next one is given when enough are free. */
  resize(slots: number): void {
    this.#slots = slots;
    this.#partySlots = Math.max(1, Math.floor(slots * this.#partyShare));
  }

  /** Rejects with LogUnavailable, without running the task, when it has waited longer than `limit` for its slot. */
  run<T>(party: Party, task: () => Promise<T>, limit?: WaitLimit): Promise<T> {
    if (limit === undefined) return this.#run(party, task);
    const late = Promise.withResolvers<never>();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      late.reject(new LogUnavailable(`${limit.what}: earlier reads take too long`));
    }, limit.ms);
    const begin = () => {
      clearTimeout(timer);
      return isLate ? late.promise : task();
    };
    return Promise.race([this.#run(party, begin), late.promise]);
  }

  async #run<T>(party: Party, task: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#queue.push(party, resolve);
    this.#grant();
    await promise;
    try {
      return await task();
    } finally {
      this.#takenCount -= 1;
      const left = this.#takenBy(party) - 1;
      if (left > 0) this.#taken.set(party, left);
      else this.#taken.delete(party);
      this.#grant();
    }
  }

  #grant(): void {
    const mayHave = (party: Party) => party === undefined || this.#takenBy(party) < this.#partySlots;
    while (this.#takenCount < this.#slots) {
      const next = this.#queue.shift(mayHave);
      if (next === undefined) return;
      this.#takenCount += 1;
      this.#taken.set(next.party, this.#takenBy(next.party) + 1);
      next.grant();
    }
  }

  #takenBy(party: Party): number {
    return this.#taken.get(party) ?? 0;
  }
}

/** Resumes one waiting reader in each turn of the event loop, so that other work of the process never waits for more than one. */
export class LoopTurns {
  readonly #queue = new TurnQueue();
  #isQueued = false;

  next(party: Party): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#queue.push(party, resolve);
    this.#schedule();
    return promise;
  }

  #schedule(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    setImmediate(() => {
      this.#isQueued = false;
      const next = this.#queue.shift();
      if (next === undefined) return;
      next.grant();
      this.#schedule();
    });
  }
}
