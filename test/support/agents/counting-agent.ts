import { type ForeignAgent, startForeignAgent } from './remote-agent.ts';

/** Tokens `0 `, `1 `, … : a hole, a double or a swap in the text is seen at once. */
export const countingTokens = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index} `);

/** A foreign agent of 0.3 that counts, one token after each pause: long enough a text for something to die in it. */
export function startCountingAgent(tokens: readonly string[], pauseMs: number): Promise<ForeignAgent> {
  return startForeignAgent({
    dialect: '0.3',
    script: async function* () {
      for (const token of tokens) {
        yield { token };
        yield { pause: pauseMs };
      }
      yield { complete: true };
    },
  });
}
