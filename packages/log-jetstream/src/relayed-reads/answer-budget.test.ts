import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AnswerBudget, MESSAGES_PER_SECOND_MAX } from './answer-budget.ts';

/** Answers of these sizes. `end` ends one, and `begun` has those that have begun. */
function answers(sizes: readonly number[]) {
  const budget = new AnswerBudget();
  const begun: number[] = [];
  const open = sizes.map(() => Promise.withResolvers<number>());
  const ended = sizes.map((size, index) =>
    budget.run(size, () => {
      begun.push(index);
      return open[index]!.promise;
    }),
  );
  const end = async (index: number) => {
    open[index]!.resolve(1);
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

test('an agent receives no more messages in a second than its budget has, and the first ones at once', async () => {
  const budget = new AnswerBudget();
  const [answers, messages] = [10, 512];
  const startMs = performance.now();
  await budget.run(messages, async () => messages);
  await Promise.all(Array.from({ length: answers - 1 }, () => budget.run(messages, async () => messages)));
  // The last one begins when the budget has refilled what the others, except for those on their way with it, took beyond the first 1,024.
  const refilled = (answers - 2) * messages - 1_024;
  assert.ok(performance.now() - startMs >= (refilled / MESSAGES_PER_SECOND_MAX) * 1_000 - 1);
  assert.ok(budget.fullInMs > 0);
});

test('a request that waits for the budget to refill does not wait for another answer to end', async () => {
  const budget = new AnswerBudget();
  await budget.run(1, async () => 1_100);
  await budget.run(1, async () => 1);
});
