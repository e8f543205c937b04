/** Numbers of tokens. Cached ones are part of the input, those of reasoning part of the output. */
export type TokenUsage = {
  inputTokens?: number;
  outputTokens?: number;
  cachedTokens?: number;
  reasoningTokens?: number;
};

export const TOKEN_COUNTS = [
  'inputTokens',
  'outputTokens',
  'cachedTokens',
  'reasoningTokens',
] as const satisfies readonly (keyof TokenUsage)[];

/** The sum of two usages. Members of `more` that are not numbers of tokens are ignored. */
export function addTokens(sum: TokenUsage, more: Readonly<Record<string, unknown>>): TokenUsage {
  const total = { ...sum };
  for (const name of TOKEN_COUNTS) {
    const tokens = more[name];
    if (typeof tokens === 'number') total[name] = (total[name] ?? 0) + tokens;
  }
  return total;
}
