import { isTerminal } from '@hopline/a2a';
import type { LaneState, TaskControl } from '@hopline/events';
import type { DropReason, TextRun } from './commands.ts';
import { artifactFact, closeLanes, type Decision, drop, Facts } from './decision.ts';

/** Text of a lane becomes one chunk of its artifact: the first opens or replaces, later ones append (C-18, S0-13). */
export function decideRun(control: TaskControl | undefined, run: TextRun, at: number): Decision {
  if (control === undefined) return drop('unknown task');
  if (isTerminal(control.state)) return drop('terminal');
  if (run.from.turn !== control.turn) return drop('stale turn');
  const lane = control.lanes[run.lane];
  const refused = refusal(lane, run.from);
  if (lane === undefined || refused !== undefined) return drop(refused ?? 'unknown lane');
  const append = lane.phase === 'open';
  // S0's clients know a stream by a first chunk that is not its last: an answer that fits into one chunk is closed by an empty one (S0-17, C-2).
  const closesApart = run.last && !append && control.profile === 'caipe';
  const update = { parts: [{ text: run.text }], append, lastChunk: run.last && !closesApart };
  const facts = new Facts(control);
  facts.add({ ...artifactFact(control, run.lane, lane, update, at), chunk: run.chunk });
  if (closesApart) closeLanes(facts, at, (_lane, name) => name === run.lane);
  return facts.decision();
}

/** Why this producer may not write to the lane now; undefined when it may. */
export function refusal(lane: LaneState | undefined, from: { id: string; attempt: number }): DropReason | undefined {
  if (lane === undefined) return 'unknown lane';
  if (lane.producer !== from.id) return 'foreign lane';
  if (lane.phase === 'closed') return 'closed lane';
  if (lane.attempt !== from.attempt) return 'stale attempt';
  return undefined;
}
