/** Label value of everything that has no name of its own. */
export const OTHER = 'other';

/** Names without a label value whose uses are counted; uses of further ones are not. */
const CANDIDATES_MAX = 1_000;
/** Time after which counted uses are halved, and at most one name is replaced. */
export const TURNOVER_MS = 60_000;
/** A name replaces the least used one when it has been used this many times as often, and at least USES_MIN times. */
const USES_FACTOR = 2;
export const USES_MIN = 5;

type TopNamesOptions = {
  /** Names that are label values at the same time. */
  readonly max: number;
  /** Called with a name that another one replaces as a label value, so that its series end. */
  readonly onReplaced: (name: string) => void;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
};

/**
 * Decides which names of an open set (tenants, callers) are label values: the first `max`, and later those that are used most. All others are
 * OTHER. Recent uses count more, and a name is only replaced by one that is clearly busier, so that a steady load begins no new series.
 */
export class TopNames {
  readonly #options: TopNamesOptions;
  readonly #now: () => number;
  readonly #named = new Map<string, number>();
  readonly #candidates = new Map<string, number>();
  #turnoverAtMs: number;

  constructor(options: TopNamesOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#turnoverAtMs = this.#now() + TURNOVER_MS;
  }

  /** The label value of a name. Counts one use of it. */
  use(name: string): string {
    const nowMs = this.#now();
    if (nowMs >= this.#turnoverAtMs) this.#turnOver(nowMs);
    const uses = this.#named.get(name);
    if (uses !== undefined || this.#named.size < this.#options.max) {
      this.#named.set(name, (uses ?? 0) + 1);
      return name;
    }
    const candidate = this.#candidates.get(name);
    if (candidate !== undefined || this.#candidates.size < CANDIDATES_MAX) this.#candidates.set(name, (candidate ?? 0) + 1);
    return OTHER;
  }

  has(name: string): boolean {
    return this.#named.has(name);
  }

  #turnOver(nowMs: number): void {
    const busiest = extreme(this.#candidates, (uses, most) => uses > most);
    const idlest = extreme(this.#named, (uses, least) => uses < least);
    if (busiest !== undefined && idlest !== undefined) {
      const [name, uses] = busiest;
      if (uses >= USES_MIN && uses >= USES_FACTOR * idlest[1]) {
        this.#named.delete(idlest[0]);
        this.#candidates.delete(name);
        this.#named.set(name, uses);
        this.#options.onReplaced(idlest[0]);
      }
    }
    const halvings = 1 + Math.floor((nowMs - this.#turnoverAtMs) / TURNOVER_MS);
    this.#turnoverAtMs = nowMs + TURNOVER_MS;
    for (const [name, uses] of this.#named) this.#named.set(name, uses / 2 ** halvings);
    for (const [name, uses] of this.#candidates) {
      const left = uses / 2 ** halvings;
      if (left < 1) this.#candidates.delete(name);
      else this.#candidates.set(name, left);
    }
  }
}

function extreme(uses: Map<string, number>, isBetter: (one: number, best: number) => boolean): [string, number] | undefined {
  let best: [string, number] | undefined;
  for (const entry of uses) if (best === undefined || isBetter(entry[1], best[1])) best = entry;
  return best;
}
