import { isTerminal } from '@hopline/a2a';
import { entryOf, isSameItem, type LaneState, type TaskAggregate } from '@hopline/events';
import type { RejectionReason, TextRun } from './commands.ts';
import { artifactFact, closeLanes, type Decision, Facts, reject } from './decision.ts';

/** A run of text becomes one chunk of the lane's artifact: the first chunk opens or replaces, later ones append. */
export function decideRun(aggregate: TaskAggregate | undefined, run: TextRun, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  if (run.from.turn !== aggregate.turn) return reject('stale turn');
  const producer = entryOf(aggregate.producers, run.from.id);
  if (producer !== undefined && !isSameItem(producer, run.from)) return reject('other item');
  const lane = entryOf(aggregate.lanes, run.lane);
  const rejected = refusal(lane, run.from);
  if (lane === undefined || rejected !== undefined) return reject(rejected ?? 'unknown lane');
  const append = lane.phase === 'open';
  const closesSeparately = run.last && !append && lane.artifact?.separateClose === true;
  const update = { parts: [{ text: run.text }], append, lastChunk: run.last && !closesSeparately };
  const facts = new Facts(aggregate);
  facts.add({ ...artifactFact(aggregate, run.lane, lane, update, at), chunk: run.chunk });
  if (closesSeparately) closeLanes(facts, at, (_lane, name) => name === run.lane);
  return facts.decision();
}

/** Why the producer may not write to the lane; undefined when it may. */
export function refusal(lane: LaneState | undefined, from: { id: string; attempt: number }): RejectionReason | undefined {
  if (lane === undefined) return 'unknown lane';
  if (lane.producer !== from.id) return 'other producer';
  if (lane.phase === 'closed') return 'closed lane';
  if (lane.attempt !== from.attempt) return 'stale attempt';
  return undefined;
}
