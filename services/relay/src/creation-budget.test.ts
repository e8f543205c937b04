import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CREATIONS_AT_ONCE_MAX, CREATIONS_PER_SECOND_MAX, CreationBudget } from './creation-budget.ts';

function admitted(budget: CreationBudget, agent: string, storedAt: number, count: number): number {
  return Array.from({ length: count }, () => budget.admit(`agent.${agent}`, storedAt)).filter(Boolean).length;
}

test('an agent begins 1,024 tasks at once, and 200 in each second after that; others have their own budget', () => {
  const budget = new CreationBudget();
  assert.equal(admitted(budget, 'a', 0, CREATIONS_AT_ONCE_MAX + 10), CREATIONS_AT_ONCE_MAX);
  assert.equal(admitted(budget, 'b', 0, 10), 10);
  assert.equal(admitted(budget, 'a', 1_000, 1_000), CREATIONS_PER_SECOND_MAX);
  assert.equal(admitted(budget, 'a', 3_600_000, 5_000), CREATIONS_AT_ONCE_MAX);
});

test('the time is that of the log: a backlog of an hour is admitted at once, and an older message refills nothing', () => {
  const budget = new CreationBudget();
  for (let second = 0; second < 3_600; second += 1)
    assert.equal(admitted(budget, 'a', second * 1_000, CREATIONS_PER_SECOND_MAX), CREATIONS_PER_SECOND_MAX);
  admitted(budget, 'a', 3_600_000, 5_000);
  assert.equal(admitted(budget, 'a', 0, 10), 0);
  assert.equal(admitted(budget, 'a', 3_600_500, 1_000), CREATIONS_PER_SECOND_MAX / 2);
});
