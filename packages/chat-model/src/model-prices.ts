import { readFileSync } from 'node:fs';
import type { TokenUsage } from '@hopline/events';

/** Prices of a million tokens, in the currency of the file. Without `cachedInput` cached tokens cost as much as other input. */
export type ModelPrice = { input: number; cachedInput?: number; output: number };

const TOKENS_OF_A_PRICE = 1_000_000;

/**
 * Reads the prices of models from a file `{"models": {"NAME": {"input": 1.25, "cachedInput": 0.125, "output": 10}}}`. Returns the price of a
 * model; undefined for one that the file does not name. Both throw an Error of one sentence that quotes no content.
 */
export function readPrices(path: string): (model: string) => ModelPrice | undefined {
  const models = pricesIn(path);
  return model => (Object.hasOwn(models, model) ? priceIn(models[model]) : undefined);
}

function priceIn(price: unknown): ModelPrice {
  const { input, cachedInput, output } = (price ?? {}) as Partial<Record<string, unknown>>;
  const isPrice = (value: unknown) => typeof value === 'number' && Number.isFinite(value) && value >= 0;
  if (!isPrice(input) || !isPrice(output) || (cachedInput !== undefined && !isPrice(cachedInput)))
    throw new Error('HOPLINE_MODEL_PRICES_FILE: each model needs the numbers `input` and `output`, and may have `cachedInput`');
  return price as ModelPrice;
}

function pricesIn(path: string): Record<string, unknown> {
  let file: unknown;
  try {
    file = JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    throw new Error('HOPLINE_MODEL_PRICES_FILE cannot be read as JSON');
  }
  const models = (file as { models?: unknown } | null)?.models;
  if (typeof models !== 'object' || models === null) throw new Error('HOPLINE_MODEL_PRICES_FILE has no object `models`');
  return models as Record<string, unknown>;
}

/** Undefined without a price, or without usage: then the cost is unknown, not 0. */
export function costOf(
  { inputTokens: input, cachedTokens: cached = 0, outputTokens: output }: { [K in keyof TokenUsage]: TokenUsage[K] | undefined },
  price: ModelPrice | undefined,
): number | undefined {
  if (price === undefined || input === undefined || output === undefined) return undefined;
  const { cachedInput = price.input } = price;
  return ((input - cached) * price.input + cached * cachedInput + output * price.output) / TOKENS_OF_A_PRICE;
}
