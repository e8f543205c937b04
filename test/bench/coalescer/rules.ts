/** Rules of other products, and two from the literature. Each returns the time at which held tokens are sent. */
export type Rule = {
  name: string;
  /**
   * When held tokens are sent: the first arrived at `firstMs`, the last at `nowMs`, and the last event was sent at `sentMs` (-Infinity if
   * there was none).
   */
  dueMs(held: { tokens: number; firstMs: number; nowMs: number; delayMs: number; sentMs: number }): number;
  /** Checks the clock only when a token arrives, so nothing is sent between arrivals. */
  timerless?: boolean;
};

/** Default windows of other products, named in each entry. */
export function rules(eventCostMs: number): Rule[] {
  return [
    { name: 'pass-through', dueMs: ({ nowMs }) => nowMs },
    { name: 'linger 10 (Vercel)', dueMs: ({ firstMs }) => firstMs + 10 },
    { name: 'edge + 40 (Ably)', dueMs: ({ firstMs, sentMs }) => Math.max(firstMs, sentMs + 40) },
    {
      name: '32 or 50 (TanStack)',
      dueMs: ({ firstMs, nowMs, tokens }) => (tokens >= 32 ? nowMs : firstMs + 50),
    },
    { name: 'linger 200 (Trigger)', dueMs: ({ firstMs }) => firstMs + 200 },
    { name: 'edge + 250, no timer (Convex)', timerless: true, dueMs: ({ firstMs, sentMs }) => Math.max(firstMs, sentMs + 250) },
    { name: 'linger 250 (Cognition)', dueMs: ({ firstMs }) => firstMs + 250 },
    { name: 'greedy sum of delay', dueMs: ({ nowMs, tokens, delayMs }) => nowMs + Math.max(0, eventCostMs - delayMs) / tokens },
    {
      name: 'quiet 2, window 40',
      dueMs: ({ firstMs, nowMs, sentMs }) => Math.min(firstMs + 40, Math.max(nowMs + 2, sentMs + 40)),
    },
  ];
}
