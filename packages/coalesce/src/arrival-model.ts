/**
 * A model of a lane's source, and the wait that follows from it.
 *
 * State: a histogram of the gaps between arrivals (tokens offered at one instant are one arrival) and their mean size, both
 * decaying with a half-life of `HALF_LIFE_ARRIVALS`. No shape is assumed: the model learns a steady gap of 20 ms as well as gaps of 0.3 ms inside packets and
 * 100 ms between them.
 *
 * Decision: how long to wait for the next arrival before sending while m tokens are held ("patience"). Holding costs m per ms. The
 * value of an arrival comes from the average-cost optimal stopping problem: let g be the least possible cost per token. A chunk
 * pays K once and earns g per token, so
 *   W(m) = min over t of E[ m * min(gap, t) + [gap <= t] * (W(m + arrival) - g * arrival) ],   W = 0 for "send now",
 * and g is the root of K + W(first) - g * first = 0, found by Dinkelbach's iteration (a few steps; later ones start from the last
 * root). For a steady gap p this gives the known optimum of sqrt(2 K / p) tokens a chunk, sent at the last token and not on a
 * timer.
 */

/** Upper edges in ms, a factor of sqrt(2) apart: a wait ends at the edge, so it overshoots a gap by at most 41 %. */
const GAP_EDGES_MS = [
  0.125, 0.177, 0.25, 0.354, 0.5, 0.71, 1, 1.41, 2, 2.83, 4, 5.66, 8, 11.3, 16, 22.6, 32, 45.3, 64, 90.5, 128, 181, 256,
];
const BUCKETS = GAP_EDGES_MS.length + 1;
/** Upper edge assumed for the last bucket, which is unbounded. */
const LAST_EDGE_MS = 362;
/**
 * Uniform prior over the buckets, with the weight of one gap altogether. Without it the rule overfits the first few gaps: lanes of 60
 * tokens cost up to 1.63 times the optimum, against 1.51 times with it.
 */
const PRIOR_WEIGHT = 1 / BUCKETS;
/** Assumed mean gap of a bucket without arrivals, as a fraction of its upper edge. */
const PRIOR_GAP = 0.85;
const HALF_LIFE_ARRIVALS = 64;
const FORGET = 0.5 ** (1 / HALF_LIFE_ARRIVALS);
/**
 * Number of held amounts in the table, in steps of a quarter arrival: 64 single tokens, or 16 arrivals of any size. Beyond the table, the
 * delay bound decides.
 */
const LEVELS = 64;
const LEVELS_PER_ARRIVAL_MAX = 4;
/**
 * The table is solved again at each of the first EAGER_ARRIVALS arrivals and then once every RENEW_ARRIVALS, which keeps the cost per token
 * flat and small.
 */
const RENEW_ARRIVALS = 8;
const EAGER_ARRIVALS = 16;
const DINKELBACH_STEPS = 2;
/** Weight of a bucket that has had no arrival for ten half-lives. */
const FORGOTTEN_WEIGHT = 2 ** -10;
const REACHED_MIN = 1e-3;

export class ArrivalModel {
  #eventCostMs: number;
  readonly #holdMsMax: number;
  readonly #weight = new Float64Array(BUCKETS);
  readonly #gapSum = new Float64Array(BUCKETS);
  /** The histogram without its empty buckets, as of the last renewal. */
  readonly #share = new Float64Array(BUCKETS);
  readonly #gap = new Float64Array(BUCKETS);
  readonly #edge = new Float64Array(BUCKETS);
  #filled = 0;
  readonly #patience = new Float64Array(LEVELS + 1);
  readonly #value = new Float64Array(LEVELS + 1 + LEVELS_PER_ARRIVAL_MAX);
  /** The highest level at which waiting is worth its cost. At the levels above it, patience and value are 0. */
  #topLevel = 0;
  #arrivals = 0;
  #meanTokens = 1;
  #levelTokens = 1;
  #costPerToken: number;

  constructor(eventCostMs: number, holdMsMax: number) {
    this.#eventCostMs = eventCostMs;
    this.#holdMsMax = holdMsMax;
    this.#costPerToken = eventCostMs;
    this.#weight.fill(PRIOR_WEIGHT);
    for (let bucket = 0; bucket < BUCKETS; bucket++)
      this.#gapSum[bucket] = PRIOR_WEIGHT * PRIOR_GAP * (GAP_EDGES_MS[bucket] ?? LAST_EDGE_MS);
  }

  /** Sets the cost of an event, from the next renewal of the table on. */
  setEventCost(ms: number): void {
    this.#eventCostMs = ms;
  }

  /** Records one arrival of `tokens` tokens, `gapMs` after the previous arrival. */
  observe(gapMs: number, tokens: number): void {
    let bucket = 0;
    while (bucket < BUCKETS - 1 && gapMs > GAP_EDGES_MS[bucket]!) bucket++;
    for (let index = 0; index < BUCKETS; index++) {
      const keep = this.#weight[index]! > FORGOTTEN_WEIGHT ? FORGET : 0;
      this.#weight[index]! *= keep;
      this.#gapSum[index]! *= keep;
    }
    this.#weight[bucket]! += 1;
    this.#gapSum[bucket]! += gapMs;
    this.#arrivals++;
    this.#meanTokens += (tokens - this.#meanTokens) * Math.max(1 - FORGET, 1 / this.#arrivals);
    if (this.#arrivals <= EAGER_ARRIVALS || this.#arrivals % RENEW_ARRIVALS === 0) this.#renew();
  }

  /**
   * Milliseconds to wait for the next arrival while `tokens` are held. 0: send now. Undefined beyond the table and before the first gap.
   */
  patienceMs(tokens: number): number | undefined {
    const level = Math.max(1, Math.round(tokens / this.#levelTokens));
    return this.#arrivals === 0 || level > LEVELS ? undefined : this.#patience[level];
  }

  #renew(): void {
    this.#compact();
    this.#levelTokens = Math.max(1, this.#meanTokens / LEVELS_PER_ARRIVAL_MAX);
    const step = Math.max(1, Math.round(this.#meanTokens / this.#levelTokens));
    for (let round = 0; round < DINKELBACH_STEPS; round++) {
      this.#solveLevels(step);
      const surplus = this.#eventCostMs + this.#value[step]! - this.#costPerToken * step * this.#levelTokens;
      this.#costPerToken = Math.max(0, this.#costPerToken + surplus / this.#tokensPerChunk(step));
    }
  }

  #compact(): void {
    let total = 0;
    for (const weight of this.#weight) total += weight;
    this.#filled = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const weight = this.#weight[bucket]!;
      if (weight === 0) continue;
      this.#share[this.#filled] = weight / total;
      this.#gap[this.#filled] = this.#gapSum[bucket]! / weight;
      this.#edge[this.#filled] = GAP_EDGES_MS[bucket] ?? Number.POSITIVE_INFINITY;
      this.#filled++;
    }
  }

  /**
   * Solves only the levels at which waiting is worth its cost, some 4 of 64 at the pace of a language model. The more tokens are held, the
   * less a wait is worth. So once a level sends now, all levels above it do as well.
   */
  #solveLevels(step: number): void {
    let top = this.#topLevel;
    this.#patience.fill(0, 1, top + 1);
    this.#value.fill(0, 1, top + 1);
    while (top < LEVELS && this.#solveLevel(top + 1, step) < 0) top++;
    for (let level = top; level >= 1; level--) this.#solveLevel(level, step);
    while (top > 0 && this.#value[top] === 0) top--;
    this.#topLevel = top;
  }

  /** Finds the best wait of one level, the upper edge of a bucket or 0, given the values of the levels above it. Returns its value. */
  #solveLevel(level: number, step: number): number {
    const tokens = level * this.#levelTokens;
    const onArrival = this.#value[level + step]! - this.#costPerToken * step * this.#levelTokens;
    let ahead = 1;
    let passed = 0;
    let best = 0;
    let patience = 0;
    for (let index = 0; index < this.#filled; index++) {
      const edge = this.#edge[index]!;
      if (edge > this.#holdMsMax) break;
      ahead -= this.#share[index]!;
      passed += this.#share[index]! * (tokens * this.#gap[index]! + onArrival);
      const value = passed + ahead * tokens * edge;
      if (value < best) {
        best = value;
        patience = edge;
      }
    }
    this.#value[level] = best;
    this.#patience[level] = patience;
    return best;
  }

  /** Expected tokens per chunk under the current table. */
  #tokensPerChunk(step: number): number {
    let reached = 1;
    let tokens = 0;
    for (let level = step; level <= LEVELS && reached > REACHED_MIN; level += step) {
      tokens += reached * step * this.#levelTokens;
      let within = 0;
      for (let index = 0; index < this.#filled && this.#edge[index]! <= this.#patience[level]!; index++)
        within += this.#share[index]!;
      reached *= within;
    }
    return tokens;
  }
}
