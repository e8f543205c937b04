import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nextMove, type PlacedStream } from './leader-placement.ts';

/** Moves leaders until no move is left; resolves with the number of leaders on each node. */
function settle(streams: PlacedStream[], mayMove?: (stream: PlacedStream) => boolean): Map<string, number> {
  const placed = new Map(streams.map(stream => [stream.name, stream]));
  for (let moves = 0; ; moves += 1) {
    assert.ok(moves <= streams.length * streams.length, 'moving ends');
    const move = nextMove([...placed.values()], mayMove);
    if (move === undefined) break;
    const { leader, followers, ...stream } = placed.get(move.stream)!;
    assert.equal(leader, move.from);
    assert.ok(stream.isWhole && followers.includes(move.to));
    placed.set(move.stream, { ...stream, leader: move.to, followers: [leader, ...followers.filter(node => node !== move.to)] });
  }
  const counts = new Map<string, number>();
  for (const { leader, followers } of placed.values())
    for (const node of [leader, ...followers]) counts.set(node, (counts.get(node) ?? 0) + (node === leader ? 1 : 0));
  return counts;
}

const spread = (counts: Map<string, number>) => Math.max(...counts.values()) - Math.min(...counts.values());

test('the leaders become evenly spread over three nodes, to within one, wherever they start', () => {
  const nodes = ['a', 'b', 'c'];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...nodes), { minLength: 1, maxLength: 40 }), leaders => {
      const streams = leaders.map((leader, n) => {
        const followers = nodes.filter(node => node !== leader);
        return { name: `s${n}`, leader, followers, isWhole: true };
      });
      assert.ok(spread(settle(streams)) <= 1);
    }),
  );
});

test('on five nodes a leader moves by way of another node if no stream can move directly', () => {
  const stream = (name: string, leader: string, ...followers: string[]) => ({ name, leader, followers, isWhole: true });
  const streams = [
    stream('s1', 'a', 'b', 'd'),
    stream('s2', 'a', 'b', 'd'),
    stream('s3', 'b', 'a', 'c'),
    stream('s4', 'd', 'a', 'b'),
    stream('s5', 'e', 'b', 'd'),
  ];
  assert.deepEqual(nextMove(streams), { stream: 's3', from: 'b', to: 'c' });
  assert.equal(spread(settle(streams)), 0);
});

test('a stream with a replica that lags or is away stays where it is', () => {
  const streams = ['s1', 's2', 's3'].map(name => ({ name, leader: 'a', followers: ['b', 'c'], isWhole: name === 's2' }));
  assert.deepEqual(nextMove(streams), { stream: 's2', from: 'a', to: 'b' });
  assert.equal(nextMove(streams.map(stream => ({ ...stream, isWhole: false }))), undefined);
});

test('streams that must not move also count, and on one node nothing moves', () => {
  const streams = ['fixed', 's1', 's2'].map((name, n) => ({
    name,
    leader: n === 2 ? 'b' : 'a',
    followers: [n === 2 ? 'a' : 'b', 'c'],
    isWhole: true,
  }));
  assert.deepEqual(
    nextMove(streams, ({ name }) => name !== 'fixed'),
    { stream: 's1', from: 'a', to: 'c' },
  );
  assert.equal(nextMove([{ name: 's1', leader: 'a', followers: [], isWhole: true }]), undefined);
  assert.equal(nextMove([]), undefined);
});
