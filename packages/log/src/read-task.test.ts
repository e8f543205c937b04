import assert from 'node:assert/strict';
import test from 'node:test';
import type { CopiedFacts, Fact } from '@hopline/events';
import { factRecord } from './contract/log-under-test.ts';
import type { StoredFacts } from './fact-log.ts';
import { fromStart, startSeqOf } from './read-task.ts';

const plain = (seq: number, generation: number): StoredFacts => ({ seq, record: factRecord('t', generation, 1) });
const factsOf = (...generations: number[]): Fact[] => generations.flatMap(one => factRecord('t', one, 1).facts);

/** Of a task that has come to generation 5. */
function carriedAt(seq: number, part: number, last: boolean, ...generations: number[]): StoredFacts {
  const carried: CopiedFacts = { part, last, facts: factsOf(...generations) };
  const { aggregate } = factRecord('t', 5, 1);
  return {
    seq,
    record: { ...factRecord('t', 5, 1), facts: [], aggregate: { ...aggregate, foldedSeq: 9 }, copied: carried },
  };
}

async function* stream(...records: StoredFacts[]): AsyncGenerator<StoredFacts> {
  yield* records;
}

async function told(...records: StoredFacts[]): Promise<{ seq: number; facts: Fact[]; generation: number; raw: number }[]> {
  const all = [];
  for await (const { seq, record } of fromStart(stream(...records))) {
    const { generation, foldedSeq: raw } = record.aggregate;
    all.push({ seq, facts: record.facts, generation, raw });
  }
  return all;
}

test('who begins where a task was carried forward is told the carried facts, and that it has all of them only with the last', async () => {
  const all = await told(carriedAt(20, 1, false, 1, 2), carriedAt(21, 2, false, 3), carriedAt(22, 3, true, 4, 5), plain(30, 6));
  assert.deepEqual(
    all.map(({ seq, facts, generation, raw }) => [seq, facts.length, generation, raw]),
    [
      [20, 2, 2, 0],
      [21, 1, 3, 0],
      [22, 2, 5, 9],
      [30, 1, 6, plain(30, 6).record.aggregate.foldedSeq],
    ],
  );
  assert.deepEqual(
    all.flatMap(({ facts }) => facts),
    factsOf(1, 2, 3, 4, 5, 6),
  );
});

test('who has the facts already is told none of them again, wherever it began', async () => {
  const carried = [carriedAt(20, 1, false, 1, 2), carriedAt(21, 2, true, 3, 4, 5)];
  const facts = async (...records: StoredFacts[]) => (await told(...records)).flatMap(one => one.facts);
  assert.deepEqual(await facts(plain(5, 5), ...carried, plain(30, 6)), factsOf(5, 6));
  assert.deepEqual(await facts(...carried, plain(30, 6), ...carried, plain(40, 7)), factsOf(1, 2, 3, 4, 5, 6, 7));
});

test('who goes on in the middle of a carry is told what stands from there on: it was told the parts before from the same place', async () => {
  const facts = async (...records: StoredFacts[]) => (await told(...records)).flatMap(one => one.facts);
  const [first, second, third] = [carriedAt(20, 1, false, 1, 2), carriedAt(21, 2, false, 3), carriedAt(22, 3, true, 4, 5)];
  assert.deepEqual(await facts(second, third, plain(30, 6)), factsOf(3, 4, 5, 6));
  assert.deepEqual(await facts(third, plain(30, 6), first, second, third), factsOf(4, 5, 6));
  // Its relay died after two parts.
  assert.deepEqual(await facts(first, second, plain(30, 6), first, second, third), factsOf(1, 2, 3, 6));
});

test('a task begins where its newest record says, or with that record', () => {
  assert.equal(startSeqOf({ seq: 7, record: factRecord('t', 1, 0) }), 7);
  assert.equal(startSeqOf({ seq: 7, record: factRecord('t', 2, 3) }), 3);
});
