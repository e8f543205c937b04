import { entryOf, type Fact, type TaskAggregate } from '@hopline/events';

/**
 * Whether a record with these facts only adds text to open artifacts of the attempts that have opened them: it changes no state, call,
 * attempt or phase of a lane. Workers decide nothing from such a record. `before`: the task before the record.
 */
export function onlyContinuesText(before: TaskAggregate | undefined, facts: readonly Fact[]): boolean {
  return before !== undefined && facts.length > 0 && facts.every(fact => continuesLane(before, fact));
}

function continuesLane({ lanes }: TaskAggregate, fact: Fact): boolean {
  if (fact.kind !== 'artifact.updated') return false;
  const { append, lastChunk } = fact.event.artifactUpdate;
  const lane = entryOf(lanes, fact.lane);
  return append === true && lastChunk !== true && lane?.phase === 'open' && lane.attempt === fact.attempt;
}
