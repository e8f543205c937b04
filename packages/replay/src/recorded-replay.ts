import { InputLedger, TaskInputs } from '@hopline/fold';
import { Diverged, type Divergence, RecordedDecisions } from './recorded-decisions.ts';
import { RecordedText } from './recorded-text.ts';
import type { StoredTask } from './stored-task.ts';

/** The rules threw an error on an input. */
export class ReplayFailed extends Error {
  override readonly name = 'ReplayFailed';
  readonly inputSeq: number;

  constructor(inputSeq: number, cause: unknown) {
    super(`input ${inputSeq}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.inputSeq = inputSeq;
  }
}

/**
 * Folds the inputs of a task again with the relay's own `TaskInputs`, in their order, and compares each fact with the stored one. The time
 * of each decision and the boundaries of chunks are taken from the stored facts, because only the relay's clock determined them. Everything
 * else must follow from the inputs. ADR 56 lists what that proves. Returns the first difference; throws ReplayFailed.
 */
export function recordedReplay(task: StoredTask): Divergence | undefined {
  const { taskId } = task;
  const facts = new RecordedDecisions(task);
  const text = new RecordedText(facts, task.aggregate.foldedSeq);
  const ledger = new InputLedger({ onOutcome: () => {}, onRejected: () => {} });
  const clocks = { now: () => 0, wallNow: () => facts.at };
  const inputs = new TaskInputs({ taskId, aggregate: undefined, isExpired: false, ledger, text, queue: facts, ...clocks });
  try {
    for (const input of task.inputs) {
      if (facts.isOver || facts.isUndecided(input.seq)) break;
      facts.inputSeq = input.seq;
      inputs.accept(input, facts.aggregate);
      inputs.releaseDueText(false);
    }
    inputs.releaseDueText(true);
    facts.assertEnd();
    return undefined;
  } catch (error) {
    if (error instanceof Diverged) return error.divergence;
    throw new ReplayFailed(facts.inputSeq, error);
  }
}
