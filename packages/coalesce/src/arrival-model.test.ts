import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ArrivalModel } from './arrival-model.ts';

/** Number of tokens in a chunk if each arrival brings `tokens` and the rule waits as long as its patience covers `gapMs`. */
function chunkSize(model: ArrivalModel, gapMs: number, tokens = 1): number {
  let held = tokens;
  while ((model.patienceMs(held) ?? 0) >= gapMs) held += tokens;
  return held;
}

test('patience is undefined before the first gap', () => {
  assert.equal(new ArrivalModel(120, 250).patienceMs(1), undefined);
});

test('after three gaps, a steady gap p gives the optimum of sqrt(2 K / p) tokens per chunk', () => {
  for (const [gapMs, eventCostMs] of [
    [20, 120],
    [2, 120],
    [5, 400],
    [67, 400],
    [20, 10],
    [2, 10],
  ] as const) {
    const model = new ArrivalModel(eventCostMs, 250);
    for (let count = 0; count < 3; count++) model.observe(gapMs, 1);
    const cost = (size: number) => (eventCostMs + (gapMs * size * (size - 1)) / 2) / size;
    const sizes = Array.from({ length: 64 }, (_, index) => index + 1);
    const best = Math.min(...sizes.map(cost));
    assert.ok(cost(chunkSize(model, gapMs)) <= 1.03 * best, `gap ${gapMs}, K ${eventCostMs}: ${chunkSize(model, gapMs)} tokens`);
  }
});

test('the model waits inside a packet, not between packets', () => {
  const model = new ArrivalModel(120, 250);
  for (let index = 0; index < 200; index++) model.observe(index % 6 === 0 ? 130 : 0.4, 1);
  for (const held of [1, 6, 12]) {
    const patienceMs = model.patienceMs(held) ?? 0;
    assert.ok(patienceMs >= 0.4 && patienceMs < 2, `${patienceMs} ms with ${held} held`);
  }
});

test('a packet that arrives at one instant is sent at once if the next one is far away', () => {
  const model = new ArrivalModel(120, 250);
  for (let index = 0; index < 50; index++) model.observe(130, 6);
  assert.equal(model.patienceMs(6), 0);
});

test('a new pace is learned within two half-lives', () => {
  const model = new ArrivalModel(120, 250);
  for (let index = 0; index < 1000; index++) model.observe(67, 1);
  for (let index = 0; index < 128; index++) model.observe(2, 1);
  assert.ok(chunkSize(model, 2) >= 8 && chunkSize(model, 2) <= 14, `${chunkSize(model, 2)}`);
});

test('the model never waits for a gap beyond holdMsMax', () => {
  const model = new ArrivalModel(400, 30);
  for (let index = 0; index < 500; index++) model.observe(67, 1);
  assert.equal(model.patienceMs(1), 0);
});

test('patience is undefined for more tokens than the table covers', () => {
  const model = new ArrivalModel(120, 250);
  model.observe(1, 1);
  assert.notEqual(model.patienceMs(64), undefined);
  assert.equal(model.patienceMs(65), undefined);
});
