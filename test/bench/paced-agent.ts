import { setTimeout as delay } from 'node:timers/promises';
import { defineAgent } from '@hopline/agent';
import { tokenAt } from './tokens.ts';

/** The question that `pacedAgent` answers with `tokens` tokens, evenly at `perSecond`. */
export function pacedQuestion(tokens: number, perSecond: number): string {
  return `${tokens} tokens at ${perSecond}/s`;
}

export default defineAgent({
  name: 'paced',
  description: 'Answers with as many tokens as the question asks for, at its rate.',
  async *run({ text, signal }) {
    const [tokens = 0, perSecond = 0] = text.match(/\d+/g)?.map(Number) ?? [];
    const start = performance.now();
    for (let index = 0; index < tokens; index++) {
      // Measured from the start, not from the previous token, so that a late timer does not slow the stream down.
      const waitMs = (1000 * index) / perSecond - (performance.now() - start);
      if (waitMs > 0) await delay(waitMs, undefined, { signal });
      yield tokenAt(index);
    }
  },
});
