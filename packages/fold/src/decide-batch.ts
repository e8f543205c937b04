import { entryOf, type Fact, type TaskAggregate } from '@hopline/events';
import { type Command, decide, evolve, isKnownProducer, type RejectionReason } from '@hopline/task';
import type { QueuedCommand } from './append-queue.ts';

/** Failure reason of a task if a relay could not store one of its records. It does not follow from the task's inputs. */
export const TOO_LARGE = 'an event of this task is larger than the log accepts';
export const NOT_ENCODABLE = 'an event of this task cannot be encoded';
/** Failure reason of a task that has reached its maximum of bytes. */
export const TASK_TOO_LARGE = 'the task has reached the limit of stored bytes';

/** The result of a batch of commands: the facts of one record, and the aggregate after them. */
export type BatchDecision = { facts: Fact[]; aggregate: TaskAggregate | undefined };

type BatchOptions = {
  /** Milliseconds on the clock of holds. */
  now: () => number;
  /** Epoch milliseconds, for the times of facts. */
  wallNow: () => number;
  /** Called for each command with the reason of its rejection, if there is one. */
  onDecided: (command: Command, rejected: RejectionReason | undefined) => void;
};

/** Decides the commands of one append in order, each on the aggregate that results from the previous one. */
export function decideBatch(
  before: TaskAggregate | undefined,
  batch: readonly QueuedCommand[],
  { now, wallNow, onDecided }: BatchOptions,
): BatchDecision {
  let aggregate = before;
  const facts: Fact[] = [];
  for (const queued of batch) {
    const command = withWait(queued, now());
    const decision = decide(aggregate, command, wallNow());
    onDecided(command, decision.rejected);
    for (const fact of decision.facts) {
      facts.push(fact);
      aggregate = evolve(aggregate, fact);
    }
    aggregate = withMark(aggregate, queued.mark, decision.rejected);
  }
  return { facts, aggregate };
}

/** Adds to a run of text the time for which it waited for the previous append. */
function withWait({ command, queuedMs }: QueuedCommand, nowMs: number): Command {
  if (command.kind !== 'run') return command;
  return { ...command, chunk: { ...command.chunk, waitMs: Math.max(0, Math.round(nowMs - queuedMs)) } };
}

/** The aggregate after a command with a mark: the producer's run is folded up to ordinal `n`, except for text. */
export function withMark(
  aggregate: TaskAggregate | undefined,
  mark: QueuedCommand['mark'],
  rejected: RejectionReason | undefined,
): TaskAggregate | undefined {
  if (aggregate === undefined || mark === undefined || rejected === 'other item' || rejected === 'stale attempt')
    return aggregate;
  const { id, turn, item, attempt } = mark.from;
  if (turn !== aggregate.turn || !isKnownProducer(aggregate, id)) return aggregate;
  const known = entryOf(aggregate.producers, id);
  const lastN = known?.attempt === attempt ? known.lastN : 0;
  const producer = { ...(item !== undefined && { item }), attempt, n: mark.n, ...(lastN !== undefined && { lastN }) };
  return { ...aggregate, producers: { ...aggregate.producers, [id]: producer } };
}
