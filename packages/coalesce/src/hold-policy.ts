import { ArrivalModel } from './arrival-model.ts';
import type { FlushReason } from './chunk.ts';
import { FIRST_HOLD_MS } from './settings.ts';

/**
 * Decides when the text of one lane leaves: trades delay for events, and cannot lose much by being wrong.
 *
 * The rule that is always safe is the greedy one: send when the summed delay of what is held reaches K. Its cost is at most twice the optimum
 * (Dooly, Goldman, Scott, JACM 2001), and no deterministic rule can promise less. The learned rule (arrival-model.ts) does better on every source that
 * repeats itself. Both run: a shadow of the greedy rule sees the same arrivals, and a balance says how far the learned rule may fall behind it. When
 * the balance does not cover another chunk, chunks leave with the shadow's. So, on every arrival sequence, against an optimum that obeys holdMsMax too,
 *   cost <= (1 + REFILL_SHARE) * 2 * optimum + CREDIT_EVENTS * K.
 * Why the balance never goes below zero: a chunk of ours leaves by the learned rule only if the balance covers it at that moment. Otherwise it began
 * when the balance was too low, so all its tokens are held by the shadow too; it leaves with them, and costs no more than the shadow's.
 */

/** In units of K. With 8, sources without any pattern (exponential gaps) ran it down by chance and lost the 10 % that learning gains there. */
export const CREDIT_EVENTS = 16;
/** Part of the shadow's cost that refills the balance, so that one bad stretch does not bind a lane to the greedy rule for good. */
export const REFILL_SHARE = 1 / 32;

/** Tokens waiting to leave together, as the sums from which their delay at any later moment follows. */
type Pile = {
  tokens: number;
  startMs: number;
  /** Sum of arrival - startMs over the tokens. */
  offsetMs: number;
};

export class HoldPolicy {
  /** When the held text leaves; Infinity while nothing is held. Valid after `decide`. */
  dueMs = Number.POSITIVE_INFINITY;
  why: FlushReason = 'quiet';
  readonly #eventCostMs: number;
  readonly #holdMsMax: number;
  /** Made with the second arrival: a lane of one text needs none. */
  #model: ArrivalModel | undefined;
  readonly #own: Pile = { tokens: 0, startMs: 0, offsetMs: 0 };
  readonly #shadow: Pile = { tokens: 0, startMs: 0, offsetMs: 0 };
  #creditMs: number;
  #fresh = true;
  #arrivedMs = Number.NEGATIVE_INFINITY;
  #arrivedTokens = 0;
  #beforeMs = Number.NEGATIVE_INFINITY;

  constructor(eventCostMs: number, holdMsMax: number) {
    this.#eventCostMs = eventCostMs;
    this.#holdMsMax = holdMsMax;
    this.#creditMs = CREDIT_EVENTS * eventCostMs;
  }

  /** A token arrived. `nowMs` never decreases. */
  arrive(nowMs: number): void {
    if (nowMs > this.#arrivedMs) {
      this.decide();
      this.#beforeMs = this.#arrivedMs;
      this.#arrivedMs = nowMs;
    }
    this.#arrivedTokens++;
    const shadowDueMs = this.#shadowDueMs();
    if (shadowDueMs < nowMs) this.#settleShadow(shadowDueMs);
    put(this.#shadow, nowMs);
    // A token that comes while the lane is overdue joins a chunk that is decided and paid for: the caller was late, not the rule.
    if (this.dueMs >= nowMs || this.#own.tokens === 0) put(this.#own, nowMs);
  }

  /** Brings `dueMs` and `why` up to date. Tokens of one instant are one arrival, so this waits until the caller has offered them all. */
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
   * The held text left at `nowMs`. `forced`: everybody had to send, the shadow too. The later pieces of one token are not counted: no rule could save
   * them.
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
    const own = this.#own;
    const allowedMs = dueAt(own, this.#creditMs - this.#eventCostMs);
    if (allowedMs < nowMs) this.#set(Math.max(nowMs, this.#shadowDueMs()), 'delay');
    else this.#chooseFreely(nowMs, own);
    if (nowMs <= allowedMs && allowedMs < this.dueMs) this.#set(allowedMs, 'delay');
    const ageMs = own.startMs + this.#holdMsMax;
    if (ageMs < this.dueMs) this.#set(ageMs, 'age');
  }

  /** As if the balance covered anything. */
  #chooseFreely(nowMs: number, own: Pile): void {
    // One packet of a source nobody knows yet: its few gaps say nothing, so it has the same time whatever they were.
    const patienceMs = this.#model?.patienceMs(own.tokens);
    if (this.#fresh) this.#set(Math.max(nowMs, own.startMs + FIRST_HOLD_MS), 'first');
    else if (patienceMs === undefined) this.#set(Math.max(nowMs, dueAt(own, this.#eventCostMs)), 'delay');
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

function put(pile: Pile, nowMs: number): void {
  if (pile.tokens === 0) {
    pile.startMs = nowMs;
    pile.offsetMs = 0;
  }
  pile.tokens++;
  pile.offsetMs += nowMs - pile.startMs;
}

/** Summed delay of the pile if it leaves at `atMs`. */
function delayMs(pile: Pile, atMs: number): number {
  return pile.tokens === 0 ? 0 : pile.tokens * (atMs - pile.startMs) - pile.offsetMs;
}

/** When the summed delay of the pile reaches `sumMs`. */
function dueAt(pile: Pile, sumMs: number): number {
  return pile.startMs + (sumMs + pile.offsetMs) / pile.tokens;
}
