/**
 * Defects that are in the services today, with seeds that show them. A seed of this list must fail: when its defect is mended, the test
 * fails until the seed is removed here, so the list is never longer than the truth.
 */
export type KnownDefect = { reason: string; seeds: readonly number[] };

export const KNOWN_DEFECTS: readonly KnownDefect[] = [];
