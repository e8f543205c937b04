import assert from 'node:assert/strict';

/** Earliest time in epoch milliseconds that a generation after the death of a relay can be. */
const TIME_MIN = Date.parse('2026-01-01');

/**
 * Asserts that each generation is one more than the previous one, or the time at which a relay took over from a relay that may have stored
 * events that were lost (ADR 144).
 */
export function assertGenerations(events: readonly { id: string }[]): void {
  const generations = events.map(({ id }) => Number(id.split('.')[0]));
  for (const [index, generation] of generations.entries()) {
    const before = generations[index - 1] ?? 0;
    assert.ok(generation === before + 1 || generation > Math.max(before, TIME_MIN), `${generation} after ${before}`);
  }
}
