import { stateWord } from '@hopline/a2a';
import type { AgentInput, ArtifactUpdated, VisibleFact } from '@hopline/events';
import type { StoredFacts, StoredInput } from '@hopline/log';

/** The record of an event, the record before it, and the task's inputs. */
export type Origin = { stored: StoredFacts; before: StoredFacts | undefined; inputs: readonly StoredInput[] };

/** The records that a chunk names or, for another event, the record from which the relay decided it. */
export function inputsOf(fact: VisibleFact, { stored, before, inputs }: Origin): StoredInput[] {
  if (fact.kind === 'artifact.updated' && fact.chunk !== undefined) {
    const { firstSeq, lastSeq } = fact.chunk;
    return inputs.filter(input => input.seq >= firstSeq && input.seq <= lastSeq && hasText(input, fact));
  }
  // Records up to `foldedSeq` were decided earlier; records stored after this fact led to later facts.
  const folded = before?.record.aggregate.foldedSeq ?? 0;
  const last = stored.storedAt ?? Number.POSITIVE_INFINITY;
  const found = inputs.find(input => input.seq > folded && input.storedAt <= last && causes(input, fact));
  return found === undefined ? [] : [found];
}

function hasText({ record }: StoredInput, { lane, producer, attempt }: ArtifactUpdated): boolean {
  if ('input' in record || record.from.id !== producer || record.from.attempt !== attempt) return false;
  return record.inputs.some(input => input.kind === 'text' && input.lane === lane);
}

/** Whether the record contains an input from which the event follows. */
function causes({ record }: StoredInput, fact: VisibleFact): boolean {
  if (fact.kind === 'task.created') return 'input' in record && record.input.kind === 'message';
  if (fact.kind === 'artifact.updated') {
    if ('input' in record) return record.input.kind === 'cancel';
    const { id, attempt } = record.from;
    const isOwn = id === fact.producer && attempt === fact.attempt;
    return record.inputs.some(input => (isOwn && isOfLane(input, fact.lane)) || endsTask(input));
  }
  const { state } = fact.event.statusUpdate.status;
  if ('input' in record)
    return record.input.kind === 'cancel' ? state === 'TASK_STATE_CANCELED' : record.input.kind !== 'message';
  return record.inputs.some(input => input.kind === 'status' && input.state === state);
}

function isOfLane(input: AgentInput, lane: string): boolean {
  return (input.kind === 'artifact' || input.kind === 'close') && input.lane === lane;
}

/** Whether an input ends its call or the task, which closes open artifacts. */
function endsTask(input: AgentInput): boolean {
  return input.kind === 'ended' || (input.kind === 'status' && stateWord(input.state) !== 'working');
}
