import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AnswerBudget } from './answer-budget.ts';

/** Answers of these sizes. `end` ends one, and `begun` has those that have begun. */
function answers(sizes: readonly number[]) {
  const budget = new AnswerBudget();
  const begun: number[] = [];
  const open = sizes.map(() => Promise.withResolvers<void>());
  const ended = sizes.map((size, index) =>
    budget.run(size, () => {
      begun.push(index);
      return open[index]!.promise;
    }),
  );
  const end = async (index: number) => {
    open[index]!.resolve();
    await ended[index];
    await nextTurn();
  };
  return { begun, end, open, ended };
}

test('answers begin in the order of their requests while 1,024 messages suffice for them', async () => {
  const { begun, end } = answers([1_000, 24, 1, 1_023]);
  await nextTurn();
  assert.deepEqual(begun, [0, 1]);
  await end(1);
  assert.deepEqual(begun, [0, 1, 2]);
  await end(0);
  assert.deepEqual(begun, [0, 1, 2, 3]);
});

test('an answer that needs more than the budget waits for all others, and small requests do not overtake it', async () => {
  const { begun, end } = answers([1, 5_000, 1]);
  await nextTurn();
  assert.deepEqual(begun, [0]);
  await end(0);
  assert.deepEqual(begun, [0, 1]);
  await end(1);
  assert.deepEqual(begun, [0, 1, 2]);
});

test('an answer that fails returns its part', async () => {
  const { begun, open, ended } = answers([1_024, 1_024]);
  open[0]!.reject(new Error('NATS is gone'));
  await assert.rejects(ended[0]!, /NATS is gone/);
  await nextTurn();
  assert.deepEqual(begun, [0, 1]);
});
