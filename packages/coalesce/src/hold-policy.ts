import { ArrivalModel } from './arrival-model.ts';
import type { FlushReason } from './chunk.ts';

/**
 * Decides when the text of one lane is sent. It trades delay for events, and a wrong prediction has a bounded cost.
 *
 * The greedy rule is always safe: send when the summed delay of the held tokens reaches K. Its cost is at most twice the optimum (Dooly,
 * Goldman, Scott, JACM 2001), and no deterministic rule guarantees less. The learned rule (arrival-model.ts) does better on every source
 * with a pattern. Both run: a shadow of the greedy rule sees the same arrivals, and a balance limits how far the learned rule may fall
 * behind it. When the balance does not cover another chunk, chunks leave when the shadow's do. So on every arrival sequence, compared with
 * an optimum that also obeys holdMsMax, cost <= (1 + REFILL_SHARE) * 2 * optimum + CREDIT_EVENTS * K. Why the balance never goes below
 * zero: a chunk leaves by the learned rule only if the balance covers it at that moment. Otherwise the chunk began when the balance was too
 * low, so the shadow holds all its tokens too; it leaves together with the shadow's chunk, and costs no more.
 */

/**
 * Initial balance in units of K. With 8, sources without a pattern (exponential gaps) used it up by chance and lost the 10 % that learning
 * gains for them.
 */
export const CREDIT_EVENTS = 16;
/**
 * Fraction of the shadow's cost that refills the balance, so that one bad stretch does not bind a lane to the greedy rule
 * forever.
 */
export const REFILL_SHARE = 1 / 32;

/** Tokens that wait to be sent together. They are kept as sums, from which their delay at any later time follows. */
type HeldDelay = {
  tokens: number;
  startMs: number;
  /** Sum of (arrival - startMs) over all tokens. */
  offsetMs: number;
};

export class HoldPolicy {
  /** When the held text is sent; Infinity while nothing is held. Valid after `decide`. */
  dueMs = Number.POSITIVE_INFINITY;
  why: FlushReason = 'quiet';
  #eventCostMs: number;
  readonly #holdMsMax: number;
  /** Created at the second arrival, because a lane of one token needs none. */
  #model: ArrivalModel | undefined;
  readonly #own: HeldDelay = { tokens: 0, startMs: 0, offsetMs: 0 };
  readonly #shadow: HeldDelay = { tokens: 0, startMs: 0, offsetMs: 0 };
  #creditMs: number;
  /** True until text of the lane has been sent. */
  #fresh = true;
  #arrivedMs = Number.NEGATIVE_INFINITY;
  #arrivedTokens = 0;
  #beforeMs = Number.NEGATIVE_INFINITY;

  constructor(eventCostMs: number, holdMsMax: number) {
    this.#eventCostMs = eventCostMs;
    this.#holdMsMax = holdMsMax;
    this.#creditMs = CREDIT_EVENTS * eventCostMs;
  }

  /** Sets the cost of an event for later decisions. The balance keeps its value in events. */
  setEventCost(ms: number): void {
    if (ms === this.#eventCostMs) return;
    this.#creditMs *= ms / this.#eventCostMs;
    this.#eventCostMs = ms;
    this.#model?.setEventCost(ms);
  }

  /** Records the arrival of tokens. `nowMs` must never decrease. */
  arrive(nowMs: number, tokens = 1): void {
    if (nowMs > this.#arrivedMs) {
      this.decide();
      this.#beforeMs = this.#arrivedMs;
      this.#arrivedMs = nowMs;
    }
    this.#arrivedTokens += tokens;
    const shadowDueMs = this.#shadowDueMs();
    if (shadowDueMs < nowMs) this.#settleShadow(shadowDueMs);
    put(this.#shadow, nowMs, tokens);
    // A token that arrives while the lane is overdue joins a chunk that is already decided and paid for, because the caller is late, not
    // the rule.
    if (this.dueMs >= nowMs || this.#own.tokens === 0) put(this.#own, nowMs, tokens);
  }

  /** Updates `dueMs` and `why`. Tokens of one instant are one arrival, so the caller offers all of them before this runs. */
  decide(): void {
    if (this.#arrivedTokens === 0) return;
    const nowMs = this.#arrivedMs;
    if (Number.isFinite(this.#beforeMs)) {
      this.#model ??= new ArrivalModel(this.#eventCostMs, this.#holdMsMax);
      this.#model.observe(nowMs - this.#beforeMs, this.#arrivedTokens);
    }
    this.#arrivedTokens = 0;
    if (this.dueMs >= nowMs) this.#choose(nowMs);
  }

  /**
   * Records that the held text was sent at `nowMs`. `forced`: every policy, including the shadow, had to send. Further pieces of one token
   * are not counted, because no rule could avoid them.
   */
  left(nowMs: number, forced: boolean): void {
    this.decide();
    if (this.#own.tokens === 0) return;
    const paidMs = Math.min(nowMs, this.dueMs);
    this.#creditMs -= this.#eventCostMs + delayMs(this.#own, paidMs);
    this.#own.tokens = 0;
    this.dueMs = Number.POSITIVE_INFINITY;
    this.#fresh = false;
    const shadowDueMs = this.#shadowDueMs();
    if (shadowDueMs <= nowMs || forced) this.#settleShadow(Math.min(shadowDueMs, nowMs));
  }

  #choose(nowMs: number): void {
    const held = this.#own;
    const allowedMs = dueAt(held, this.#creditMs - this.#eventCostMs);
    if (allowedMs < nowMs) this.#set(Math.max(nowMs, this.#shadowDueMs()), 'delay');
    else this.#chooseFreely(nowMs, held);
    if (nowMs <= allowedMs && allowedMs < this.dueMs) this.#set(allowedMs, 'delay');
    const ageMs = held.startMs + this.#holdMsMax;
    if (ageMs < this.dueMs) this.#set(ageMs, 'age');
  }

  /** Applies the learned rule without the limit of the balance. */
  #chooseFreely(nowMs: number, held: HeldDelay): void {
    // A reader waits for the first text, and an unknown source has no pace yet. So the text is sent now, which costs at most one more event
    // per lane.
    const patienceMs = this.#model?.patienceMs(held.tokens);
    if (this.#fresh) this.#set(nowMs, 'first');
    else if (patienceMs === undefined) this.#set(Math.max(nowMs, dueAt(held, this.#eventCostMs)), 'delay');
    else this.#set(nowMs + patienceMs, patienceMs === 0 ? 'ready' : 'quiet');
  }

  #set(dueMs: number, why: FlushReason): void {
    this.dueMs = dueMs;
    this.why = why;
  }

  #shadowDueMs(): number {
    if (this.#shadow.tokens === 0) return Number.POSITIVE_INFINITY;
    return Math.min(this.#shadow.startMs + this.#holdMsMax, dueAt(this.#shadow, this.#eventCostMs));
  }

  #settleShadow(atMs: number): void {
    if (this.#shadow.tokens === 0) return;
    const paidMs = this.#eventCostMs + delayMs(this.#shadow, atMs);
    this.#creditMs = Math.min(CREDIT_EVENTS * this.#eventCostMs, this.#creditMs + (1 + REFILL_SHARE) * paidMs);
    this.#shadow.tokens = 0;
  }
}

function put(held: HeldDelay, nowMs: number, tokens: number): void {
  if (held.tokens === 0) {
    held.startMs = nowMs;
    held.offsetMs = 0;
  }
  held.tokens += tokens;
  held.offsetMs += tokens * (nowMs - held.startMs);
}

/** Summed delay of the held tokens if they leave at `atMs`. */
function delayMs(held: HeldDelay, atMs: number): number {
  return held.tokens === 0 ? 0 : held.tokens * (atMs - held.startMs) - held.offsetMs;
}

/** The time at which the summed delay of the held tokens reaches `sumMs`. */
function dueAt(held: HeldDelay, sumMs: number): number {
  return held.startMs + (sumMs + held.offsetMs) / held.tokens;
}
