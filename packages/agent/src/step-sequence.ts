import { isDeeperThan } from '@hopline/a2a';
import { INPUT_DEPTH_MAX, type StepOutcome } from '@hopline/events';
import { STEP_OUTCOME_BYTES_MAX } from '@hopline/task';
import { AGENT_STEPS_BYTES_MAX, AGENT_STEPS_MAX } from './limits.ts';
import { AgentMisuse } from './misuse.ts';

/** Levels of JSON in an outcome. The input around it has a few more. */
const OUTCOME_DEPTH_MAX = INPUT_DEPTH_MAX - 8;

/** A step by its name, and how often the turn has used the name. */
export type StepPlace = { step: string; n: number };

/** An outcome that an earlier attempt has stored. */
export type StoredStep = StepPlace & { outcome: StepOutcome; attempt: number };

/** The steps of one attempt, in order, and their bounds. Its errors use the terms of the agent's author. */
export class StepSequence {
  readonly #counts = new Map<string, number>();
  /** Outcomes of earlier attempts that this one has passed. */
  #passed = 0;
  #begun: StepPlace | undefined;
  /** The steps after the last one that has not failed. */
  #lastFailed: StepPlace[] = [];
  #steps = 0;
  #bytes = 0;

  /** The turn reaches a step. Throws AgentMisuse. */
  reach(step: string): StepPlace {
    if (this.#begun !== undefined)
      throw new AgentMisuse(`step ${step} begins inside step ${this.#begun.step}; run steps one after another`);
    this.#steps += 1;
    if (this.#steps > AGENT_STEPS_MAX) throw new AgentMisuse(`the turn has more than ${AGENT_STEPS_MAX} steps`);
    const n = (this.#counts.get(step) ?? 0) + 1;
    this.#counts.set(step, n);
    return { step, n };
  }

  /** The outcome that the step has in `earlier`. If it has none, the step has begun. Throws AgentMisuse if another step is in its place. */
  outcomeOf(place: StepPlace, earlier: readonly StoredStep[]): StoredStep | undefined {
    const stored = earlier[this.#passed];
    if (stored === undefined) {
      this.#begun = place;
      return undefined;
    }
    if (stored.step !== place.step || stored.n !== place.n) throw new AgentMisuse(mismatch(place, stored));
    this.#passed += 1;
    this.#ended(place, stored.outcome);
    return stored;
  }

  /** The failed steps at the end of the sequence, which run again if the attempt is repeated. */
  get lastFailed(): readonly StepPlace[] {
    return this.#lastFailed;
  }

  /** The step that was begun ends. Throws AgentMisuse for an outcome that cannot be stored. */
  end(outcome: StepOutcome): StepPlace {
    const place = this.#begun;
    if (place === undefined) throw new AgentMisuse('a step ended that had not begun');
    this.#begun = undefined;
    this.#bytes += checkOutcome(place.step, outcome);
    if (this.#bytes > AGENT_STEPS_BYTES_MAX)
      throw new AgentMisuse(`the results of the turn's steps have more than ${AGENT_STEPS_BYTES_MAX} bytes of JSON`);
    this.#ended(place, outcome);
    return place;
  }

  #ended(place: StepPlace, { error }: StepOutcome): void {
    this.#lastFailed = error === undefined ? [] : [...this.#lastFailed, place];
  }
}

/** Returns the JSON bytes of an outcome. Throws AgentMisuse if it has too many bytes or levels to be stored. */
export function checkOutcome(step: string, outcome: StepOutcome): number {
  const bytes = Buffer.byteLength(JSON.stringify(outcome));
  if (bytes > STEP_OUTCOME_BYTES_MAX)
    throw new AgentMisuse(`step ${step}: its result has ${bytes} bytes of JSON, more than ${STEP_OUTCOME_BYTES_MAX}`);
  if (isDeeperThan(outcome, OUTCOME_DEPTH_MAX))
    throw new AgentMisuse(`step ${step}: its result nests deeper than ${OUTCOME_DEPTH_MAX} levels of JSON`);
  return bytes;
}

const nth = ({ step, n }: StepPlace) => (n === 1 ? step : `${step} (number ${n})`);

function mismatch(now: StepPlace, stored: StoredStep): string {
  return (
    `step ${nth(now)} runs where attempt ${stored.attempt} of this turn stored step ${nth(stored)}: ` +
    'a turn must make the same steps in the same order in each attempt'
  );
}
