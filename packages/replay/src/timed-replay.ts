import { isTerminal } from '@hopline/a2a';
import type { CoalesceSettings } from '@hopline/coalesce';
import type { Fact, TaskAggregate } from '@hopline/events';
import { AppendQueue, CoalescedText, decideBatch, InputLedger, TaskInputs } from '@hopline/fold';
import type { StoredInput } from '@hopline/log';

/** A fact of a timed replay. */
export type TimedFact = { fact: Fact; atMs: number };

/**
 * Runs the inputs of a task again through the code of the relay: the fold, the coalescer and the rules, with a clock that is set to the
 * time at which the log stored each input. Appends take no time, so that only the settings decide how long text is held. Copy-forwards are
 * left out, because they do not change the facts of a task that has a worker.
 */
export function timedReplay(
  { taskId, inputs }: { taskId: string; inputs: readonly StoredInput[] },
  { coalesce }: { coalesce: CoalesceSettings },
): TimedFact[] {
  let nowMs = inputs[0]?.storedAt ?? 0;
  const now = () => nowMs;
  let aggregate: TaskAggregate | undefined;
  const ledger = new InputLedger({ onOutcome: () => {}, onRejected: () => {} });
  const text = new CoalescedText(coalesce);
  const queue = new AppendQueue(now);
  const folding = new TaskInputs({ taskId, aggregate, isExpired: false, ledger, text, queue, now, wallNow: now });
  const made: TimedFact[] = [];
  const append = () => {
    while (queue.length > 0) {
      const batch = queue.take();
      const decided = decideBatch(aggregate, batch, { now, wallNow: now, onDecided: () => {} });
      ({ aggregate } = decided);
      for (const fact of decided.facts) made.push({ fact, atMs: nowMs });
    }
  };
  const release = () => {
    folding.releaseDueText(aggregate !== undefined && isTerminal(aggregate.state));
    append();
  };
  const runTimers = (untilMs: number) => {
    for (let wakeAt = folding.wakeAt; wakeAt !== undefined && wakeAt <= untilMs; wakeAt = folding.wakeAt) {
      nowMs = Math.max(nowMs, wakeAt);
      release();
    }
  };
  for (const input of inputs) {
    if (input.record.from === 'relay' && input.record.input.kind === 'copy-forward') continue;
    runTimers(input.storedAt);
    nowMs = Math.max(nowMs, input.storedAt);
    folding.accept(input, aggregate);
    release();
  }
  runTimers(Number.POSITIVE_INFINITY);
  return made;
}
