import type { Turn } from './agent.ts';
import { AgentMisuse } from './misuse.ts';

/** Registered globally, because the author's module may have its own copy of this package. */
export const THIS_TURN: unique symbol = Symbol.for('hopline.this-turn') as never;

/** `tool`, `step` and `model` yield it to find out which turn they run in. `defineAgent` answers it, and never passes it on as an event. */
export type TurnRequest = typeof THIS_TURN;

/** The turn in which the caller runs. Throws AgentMisuse outside of the `run` of `defineAgent`. */
export async function* thisTurn(): AsyncGenerator<TurnRequest, Turn, unknown> {
  const turn = yield THIS_TURN;
  if (typeof turn !== 'object' || turn === null) {
    throw new AgentMisuse('tool, step and model work only in the run of defineAgent: const value = yield* step(…)');
  }
  return turn as Turn;
}
