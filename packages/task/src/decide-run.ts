import { isTerminal } from '@hopline/a2a';
import type { LaneState, TaskControl } from '@hopline/events';
import { artifactFact, type Decision, drop } from './decision.ts';
import type { DropReason, TextRun } from './items.ts';

/** Text of a lane becomes one chunk of its artifact: the first opens or replaces, later ones append (C-18, S0-13). */
export function decideRun(control: TaskControl | undefined, run: TextRun, at: number): Decision {
  if (control === undefined) return drop('unknown task');
  if (isTerminal(control.state)) return drop('terminal');
  if (run.from.turn !== control.turn) return drop('stale turn');
  const lane = control.lanes[run.lane];
  const refused = refusal(lane, run.from);
  if (lane === undefined || refused !== undefined) return drop(refused ?? 'unknown lane');
  const update = { parts: [{ text: run.text }], append: lane.phase === 'open', lastChunk: run.last };
  return { facts: [{ ...artifactFact(control, run.lane, lane, update, at), chunk: run.chunk }] };
}

/** Why this producer may not write to the lane now; undefined when it may. */
export function refusal(lane: LaneState | undefined, from: { id: string; attempt: number }): DropReason | undefined {
  if (lane === undefined) return 'unknown lane';
  if (lane.producer !== from.id) return 'foreign lane';
  if (lane.phase === 'closed') return 'closed lane';
  if (lane.attempt !== from.attempt) return 'stale attempt';
  return undefined;
}
