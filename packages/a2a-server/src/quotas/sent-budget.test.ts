import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenBucket } from '@hopline/log';
import { SentBudget } from './sent-budget.ts';

const bucketOf = (perSecond: number, burst: number) => new TokenBucket({ perSecond, burst }, performance.now());

test('a response waits for the slower of its caller’s and its tenant’s budgets', async () => {
  const budget = new SentBudget([bucketOf(1_000_000, 100), bucketOf(1_000, 200)]);
  await budget.pace(() => false);
  const startedMs = performance.now();
  assert.ok(budget.spend(250, startedMs) > 0);
  await budget.pace(() => false);
  assert.ok(performance.now() - startedMs >= 50);
});

test('a response that is over stops waiting', { timeout: 120_000 }, async () => {
  const budget = new SentBudget([bucketOf(0.001, 1)]);
  budget.spend(2, performance.now());
  let asked = 0;
  await budget.pace(() => ++asked === 2);
  assert.equal(asked, 2);
});
