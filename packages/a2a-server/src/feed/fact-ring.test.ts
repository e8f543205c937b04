import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ArtifactUpdated } from '@hopline/events';
import { ByteBudget } from './byte-budget.ts';
import { FactRing } from './fact-ring.ts';
import { type EventEncoder, VisibleEntry } from './visible-entry.ts';

function entry(generation: number, text = ''): VisibleEntry {
  const artifact = { artifactId: 'a', parts: [{ text }] };
  const artifactUpdate = { taskId: 't', contextId: 'c', artifact, append: true, lastChunk: false };
  const fact: ArtifactUpdated = {
    kind: 'artifact.updated',
    at: 0,
    generation,
    event: { artifactUpdate },
    lane: 'l',
    producer: 'p',
    attempt: 1,
  };
  return new VisibleEntry(fact, generation * 10, { storedAt: 1, readAt: 2 });
}

/** A budget larger than anything a test adds. */
const ample = () => new ByteBudget(1_000_000_000);

const held = (ring: FactRing, upTo: number) =>
  Array.from({ length: upTo + 1 }, (_, n) => n).filter(n => ring.after(n - 1)?.generation === n);

test('the ring keeps the newest facts by generation, up to its limit', () => {
  const ring = new FactRing(3, 1_000_000, ample());
  for (let n = 1; n <= 3; n += 1) ring.push(entry(n));
  assert.deepEqual(held(ring, 10), [1, 2, 3]);
  ring.push(entry(4));
  assert.deepEqual(held(ring, 10), [2, 3, 4]);
  assert.equal(ring.after(2)?.cursor, '3.30');
});

test('bytes are bounded too, and the newest fact is kept whatever its size', () => {
  const ring = new FactRing(100, 10_000, ample());
  for (let n = 1; n <= 20; n += 1) ring.push(entry(n, 'x'.repeat(1_000)));
  assert.deepEqual(held(ring, 30), [15, 16, 17, 18, 19, 20]);
  ring.push(entry(21, 'x'.repeat(50_000)));
  assert.deepEqual(held(ring, 30), [21]);
});

test('a gap in the generations empties the ring: it is always contiguous', () => {
  const ring = new FactRing(100, 1_000_000, ample());
  ring.push(entry(1));
  ring.push(entry(2));
  ring.push(entry(5));
  assert.deepEqual(held(ring, 10), [5]);
});

test('the bytes of all rings together are bounded: beyond the bound the ring that has been idle for longest is emptied', () => {
  const bytes = entry(1, 'x'.repeat(1_000)).bytes;
  const budget = new ByteBudget(4 * bytes);
  const [idle, busy, other] = Array.from({ length: 3 }, () => new FactRing(100, 1_000_000, budget)) as [
    FactRing,
    FactRing,
    FactRing,
  ];
  const push = (ring: FactRing, generation: number) => ring.push(entry(generation, 'x'.repeat(1_000)));
  push(busy, 1);
  for (const generation of [1, 2]) push(idle, generation);
  push(busy, 2);
  assert.deepEqual([held(idle, 3), held(busy, 3), budget.bytes], [[1, 2], [1, 2], 4 * bytes]);
  push(other, 1);
  assert.deepEqual([held(idle, 3), held(busy, 3), held(other, 3), budget.bytes], [[], [1, 2], [1], 3 * bytes]);
  push(idle, 3);
  assert.deepEqual([held(idle, 3), budget.bytes], [[3], 4 * bytes]);
});

test('a new fact never empties its own ring, and an empty ring does not count', () => {
  const budget = new ByteBudget(1);
  const ring = new FactRing(100, 1_000_000, budget);
  for (const generation of [1, 2]) ring.push(entry(generation));
  assert.deepEqual(held(ring, 3), [1, 2]);
  ring.empty();
  ring.empty();
  assert.equal(budget.bytes, 0);
});

test('a fact is encoded once per encoder, with its artifact index, and its first delivery is taken once', () => {
  const one = entry(1, 'hi');
  const json: EventEncoder<string> = { encode: (event, index, generation) => JSON.stringify({ event, index, generation }) };
  const other: EventEncoder<string> = { encode: event => JSON.stringify(event) };
  const encoded = one.encoded(json, () => 3);
  const parts = one.fact.kind === 'artifact.updated' ? one.fact.event.artifactUpdate.artifact.parts : [];
  parts[0] = { text: 'changed' };
  assert.equal(
    one.encoded(json, () => 4),
    encoded,
  );
  assert.match(encoded, /"hi".*"index":3,"generation":1/);
  assert.match(
    one.encoded(other, () => 3),
    /"changed"/,
  );
  assert.deepEqual([one.takeFirstDelivery(), one.takeFirstDelivery()], [true, false]);
});
