import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CREATIONS_AT_ONCE_MAX, CREATIONS_PER_SECOND_MAX, CreationBudget } from './creation-budget.ts';

function admitted(budget: CreationBudget, agent: string, storedAt: number, count: number): number {
  return Array.from({ length: count }, () => budget.admit(`agent.${agent}`, storedAt)).filter(Boolean).length;
}

test('an agent begins 16,384 tasks at once, and 2,000 in each second after that; others have their own budget', () => {
  const budget = new CreationBudget();
  assert.equal(admitted(budget, 'a', 0, CREATIONS_AT_ONCE_MAX + 10), CREATIONS_AT_ONCE_MAX);
  assert.equal(admitted(budget, 'b', 0, 10), 10);
  assert.equal(admitted(budget, 'a', 1_000, 3_000), CREATIONS_PER_SECOND_MAX);
  assert.equal(admitted(budget, 'a', 3_600_000, 20_000), CREATIONS_AT_ONCE_MAX);
});

test('the time is that of the log: a backlog of a minute is admitted at once, and an older message refills nothing', () => {
  const budget = new CreationBudget();
  for (let second = 0; second < 60; second += 1)
    assert.equal(admitted(budget, 'a', second * 1_000, CREATIONS_PER_SECOND_MAX), CREATIONS_PER_SECOND_MAX);
  admitted(budget, 'a', 60_000, 20_000);
  assert.equal(admitted(budget, 'a', 0, 10), 0);
  assert.equal(admitted(budget, 'a', 60_500, 3_000), CREATIONS_PER_SECOND_MAX / 2);
});
