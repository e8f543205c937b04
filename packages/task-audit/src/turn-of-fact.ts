import type { Fact, FactRecord } from '@hopline/events';

/** The turn of a fact. The aggregate is the one after its record, so messages that follow the fact in the record have begun later turns. */
export function turnOfFact(fact: Fact, { facts, aggregate }: FactRecord): number {
  const later = facts.slice(facts.indexOf(fact) + 1).filter(({ kind }) => kind === 'message.received');
  return aggregate.turn - later.length;
}
