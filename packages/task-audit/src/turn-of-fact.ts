import type { Fact, FactRecord } from '@hopline/events';

/**
 * The turn of a fact. `aggregate` is the state after its record, which includes later turns begun by messages that follow the fact in the
 * record.
 */
export function turnOfFact(fact: Fact, { facts, aggregate }: FactRecord): number {
  const later = facts.slice(facts.indexOf(fact) + 1).filter(({ kind }) => kind === 'message.received');
  return aggregate.turn - later.length;
}
