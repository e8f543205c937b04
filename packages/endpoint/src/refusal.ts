import type { Caller } from './caller.ts';

/** Why credentials were not taken. Whoever guesses learns no more than this. */
export type Refusal = 'expired' | 'not valid';

/** What looking at one credential leads to. */
export type Verdict = { caller: Caller } | { refusal: Refusal };

export const NOT_VALID: Verdict = { refusal: 'not valid' };
