import type { AgentStepRecorded, FactRecord } from '@hopline/events';
import { turnOfFact } from './turn-of-fact.ts';

/**
 * A step of an attempt, as the log has it. `ran`: its outcome is stored. `failed`: it threw, and the error is stored. `reused`: it did not
 * run, because attempt `of` has stored its outcome. `open`: the attempt reached it and stored no outcome, so it may have run, and runs
 * again in the next attempt.
 */
export type TracedStep = {
  /** The name of a step, and how often the turn had used it. */
  name: string;
  n: number;
  outcome: 'ran' | 'failed' | 'reused' | 'open';
  /** The attempt that has stored the outcome of a step that is `reused`. */
  of?: number;
  /** The call of the attempt was repeated, so the next attempt runs this failed step again. */
  isRepeated?: true;
  /**
   * When the relay stored that the attempt had reached the step, and when it stored the outcome; milliseconds after the task's first input.
   */
  fromMs: number;
  toMs: number;
};

/** The steps of each attempt, identified by producer `id`, `turn` and `attempt`. */
export class TracedSteps {
  readonly #attempts = new Map<string, TracedStep[]>();
  readonly #startMs: number;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** Adds the facts of a record, up to `last`. */
  add(record: FactRecord, last: FactRecord['facts'][number] | undefined = undefined): this {
    for (const fact of record.facts) {
      if (fact.kind === 'agent-step.recorded') this.#add(fact, turnOfFact(fact, record));
      if (fact === last) break;
    }
    return this;
  }

  of({ id, turn, attempt }: { id: string; turn: number; attempt: number }): readonly TracedStep[] {
    return this.#attempts.get(keyOf(id, turn, attempt)) ?? [];
  }

  #add({ producer, attempt, step: name, n, phase, outcome, of, at }: AgentStepRecorded, turn: number): void {
    const key = keyOf(producer, turn, attempt);
    const steps = this.#attempts.get(key) ?? [];
    this.#attempts.set(key, steps);
    const atMs = at - this.#startMs;
    const known = steps.findLast(step => step.name === name && step.n === n);
    const step = known ?? { name, n, outcome: 'open', fromMs: atMs, toMs: atMs };
    if (known === undefined) steps.push(step);
    if (phase === 'reached' && known !== undefined) {
      step.isRepeated = true;
      return;
    }
    step.toMs = atMs;
    if (phase === 'stored') step.outcome = outcome?.error === undefined ? 'ran' : 'failed';
    if (phase !== 'reused') return;
    step.outcome = 'reused';
    if (of !== undefined) step.of = of;
  }
}

const keyOf = (id: string, turn: number, attempt: number) => `${turn}/${attempt}/${id}`;

/** The outcome of a step, in words. */
export function stepText({ outcome, of = 1, isRepeated }: Pick<TracedStep, 'outcome' | 'of' | 'isRepeated'>): string {
  const then = isRepeated === true ? '; the next attempt runs it again' : '';
  if (outcome === 'reused') return `taken from attempt ${of}${then}`;
  if (outcome === 'ran') return 'ran';
  if (isRepeated === true) return `failed${then}`;
  return outcome === 'failed' ? 'failed, which is stored' : 'no outcome is stored: it may have run';
}

/** A step by its name and, from the second step of that name on, its number. */
export const stepName = ({ name, n }: Pick<TracedStep, 'name' | 'n'>) => (n === 1 ? name : `${name} (${n})`);
