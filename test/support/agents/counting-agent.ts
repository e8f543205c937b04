import { type RemoteAgent, startRemoteAgent } from './remote-agent.ts';

/** Tokens `0 `, `1 `, …, so that a missing, repeated or swapped token shows in the text. */
export const countingTokens = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index} `);

/** A remote 0.3 agent that counts with a pause after each token, so that a test can kill a process in mid-answer. */
export function startCountingAgent(tokens: readonly string[], pauseMs: number): Promise<RemoteAgent> {
  return startRemoteAgent({
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
