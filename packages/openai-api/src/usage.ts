import type { ViewUsage } from '@hopline/task-view';

export type ChatUsage = {
  prompt_tokens: number;
  prompt_tokens_details?: { cached_tokens: number };
  completion_tokens: number;
  completion_tokens_details?: { reasoning_tokens: number };
  total_tokens: number;
};
export type ResponseUsage = {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
};

/** Undefined if the agents report no tokens: zeros would be wrong. */
export function chatUsageOf(usage: ViewUsage | undefined): ChatUsage | undefined {
  const tokens = tokensOf(usage);
  if (tokens === undefined) return undefined;
  const { cachedTokens, reasoningTokens } = usage ?? {};
  return {
    prompt_tokens: tokens.input,
    ...(cachedTokens !== undefined && { prompt_tokens_details: { cached_tokens: cachedTokens } }),
    completion_tokens: tokens.output,
    ...(reasoningTokens !== undefined && { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
    total_tokens: tokens.input + tokens.output,
  };
}

export function responseUsageOf(usage: ViewUsage | undefined): ResponseUsage | null {
  const tokens = tokensOf(usage);
  if (tokens === undefined) return null;
  return {
    input_tokens: tokens.input,
    input_tokens_details: { cached_tokens: usage?.cachedTokens ?? 0 },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: usage?.reasoningTokens ?? 0 },
    total_tokens: tokens.input + tokens.output,
  };
}

function tokensOf(usage: ViewUsage | undefined): { input: number; output: number } | undefined {
  const { inputTokens, outputTokens } = usage ?? {};
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  return { input: inputTokens ?? 0, output: outputTokens ?? 0 };
}
