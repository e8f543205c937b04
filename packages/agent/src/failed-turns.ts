import { AGENT_FAILED } from './run-attempt.ts';
import type { TurnOutcome } from './turn-end.ts';

/** After this many failed turns in a row, the agent itself counts as failing, not just one question. */
export const FAILED_TURNS_MIN = 3;
/** An agent that receives no more questions may have been repaired. */
export const FAILING_MS_MAX = 10 * 60_000;

/** The failed turns of an agent since its last success. An agent's server may answer requests for its card and still fail every turn. */
export class FailedTurns {
  readonly #now: () => number;
  #count = 0;
  #newestMs = 0;
  #cause = '';

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Counts the end of a turn. */
  add({ state, cause = AGENT_FAILED }: TurnOutcome): void {
    // A turn that its task no longer needed shows nothing about the agent.
    if (state === undefined) return;
    this.#count = state === 'TASK_STATE_FAILED' ? this.#count + 1 : 0;
    this.#newestMs = this.#now();
    this.#cause = cause;
  }

  /** The cause of the newest failure if all recent turns have failed. */
  failing(): string | undefined {
    const isFailing = this.#count >= FAILED_TURNS_MIN && this.#now() - this.#newestMs < FAILING_MS_MAX;
    return isFailing ? this.#cause : undefined;
  }
}
