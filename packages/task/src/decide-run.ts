import { isTerminal } from '@hopline/a2a';
import type { LaneState, TaskAggregate } from '@hopline/events';
import type { RejectionReason, TextRun } from './commands.ts';
import { artifactFact, closeLanes, type Decision, Facts, reject } from './decision.ts';

/** Text of a lane becomes one chunk of its artifact: the first opens or replaces, later ones append (C-18, S0-13). */
export function decideRun(aggregate: TaskAggregate | undefined, run: TextRun, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  if (run.from.turn !== aggregate.turn) return reject('stale turn');
  const lane = aggregate.lanes[run.lane];
  const refused = refusal(lane, run.from);
  if (lane === undefined || refused !== undefined) return reject(refused ?? 'unknown lane');
  const append = lane.phase === 'open';
  const closesSeparately = run.last && !append && lane.artifact?.separateClose === true;
  const update = { parts: [{ text: run.text }], append, lastChunk: run.last && !closesSeparately };
  const facts = new Facts(aggregate);
  facts.add({ ...artifactFact(aggregate, run.lane, lane, update, at), chunk: run.chunk });
  if (closesSeparately) closeLanes(facts, at, (_lane, name) => name === run.lane);
  return facts.decision();
}

/** Why this producer may not write to the lane now; undefined when it may. */
export function refusal(lane: LaneState | undefined, from: { id: string; attempt: number }): RejectionReason | undefined {
  if (lane === undefined) return 'unknown lane';
  if (lane.producer !== from.id) return 'foreign lane';
  if (lane.phase === 'closed') return 'closed lane';
  if (lane.attempt !== from.attempt) return 'stale attempt';
  return undefined;
}
