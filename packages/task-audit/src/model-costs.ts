import { addTokens, type TokenUsage } from '@hopline/events';
import type { ProducerActivity } from './producers.ts';

/**
 * The requests of one agent to one model, in all its attempts. `cost`: absent if some request has no cost, because the sum would be too
 * small.
 */
export type ModelCost = TokenUsage & { agent: string; model: string; requests: number; ms: number; cost?: number };

/** The models of a task by agent, the most costly first. */
export function modelCostsOf(producers: readonly ProducerActivity[]): ModelCost[] {
  const sums = new Map<string, { tokens: TokenUsage; first: Omit<ModelCost, 'cost'>; costs: (number | undefined)[] }>();
  for (const { agent, models = [] } of producers)
    for (const { model, ms, fromMs: _fromMs, cost, ...tokens } of models) {
      const key = JSON.stringify([agent, model]);
      const sum = sums.get(key) ?? { tokens: {}, first: { agent, model, requests: 0, ms: 0 }, costs: [] };
      sums.set(key, sum);
      sum.first.requests += 1;
      sum.first.ms += ms;
      sum.tokens = addTokens(sum.tokens, tokens);
      sum.costs.push(cost);
    }
  const all = [...sums.values()].map(({ first, tokens, costs }): ModelCost => {
    const known = costs.filter(cost => cost !== undefined);
    const isWhole = known.length === costs.length;
    return { ...first, ...tokens, ...(isWhole && { cost: known.reduce((total, cost) => total + cost, 0) }) };
  });
  return all.toSorted((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || tokensOf(b) - tokensOf(a));
}

const tokensOf = ({ inputTokens = 0, outputTokens = 0 }: ModelCost) => inputTokens + outputTokens;
