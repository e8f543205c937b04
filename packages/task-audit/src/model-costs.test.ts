import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelCostsOf } from './model-costs.ts';
import type { ProducerActivity, TracedModelCall } from './producers.ts';

const producer = (agent: string, models?: TracedModelCall[]) => ({ agent, models }) as unknown as ProducerActivity;
const call = (model: string, more: Partial<TracedModelCall> = {}) => ({ model, fromMs: 1, ms: 10, ...more });

test('requests of all attempts are summed by agent and model, the most costly first; a sum with an unknown cost has none', () => {
  const large = { inputTokens: 100, cachedTokens: 60, outputTokens: 5, cost: 2 };
  const all = modelCostsOf([
    producer('guide', [call('small', { inputTokens: 7, outputTokens: 1, cost: 0.5 }), call('large', large)]),
    producer('guide', [call('large', large)]),
    producer('supervisor', [call('large', { inputTokens: 1_000, outputTokens: 1 }), call('large', large)]),
    // A record of an earlier version.
    producer('files'),
  ]);
  assert.deepEqual(all, [
    { agent: 'guide', model: 'large', requests: 2, ms: 20, inputTokens: 200, cachedTokens: 120, outputTokens: 10, cost: 4 },
    { agent: 'guide', model: 'small', requests: 1, ms: 10, inputTokens: 7, outputTokens: 1, cost: 0.5 },
    { agent: 'supervisor', model: 'large', requests: 2, ms: 20, inputTokens: 1_100, cachedTokens: 60, outputTokens: 6 },
  ]);
});
