import {
  type ArtifactUpdated,
  type CallStarted,
  type CallState,
  entryOf,
  type Fact,
  forkPointOf,
  isQueueNotice,
  type LaneOpened,
  type LaneState,
  type MessageReceived,
  type StatusChanged,
  type TaskAggregate,
  type TaskCreated,
} from '@hopline/events';
import { CALL_AUTH_UNITS_MAX } from './limits.ts';

/** Applies a fact to the aggregate. Pure. Rejects no fact, because every stored fact was already decided. */
export function evolve(aggregate: TaskAggregate | undefined, fact: Fact): TaskAggregate {
  if (fact.kind === 'task.created') return created(fact);
  if (aggregate === undefined) throw new Error(`the log of a task begins with ${fact.kind}, expected task.created`);
  const base = { ...aggregate, at: fact.at };
  switch (fact.kind) {
    case 'message.received':
      return nextTurn(base, fact);
    case 'status.changed':
      return { ...statusChanged(base, fact), calls: withAuthRequest(aggregate.calls, fact) };
    case 'lane.opened':
      return { ...base, lanes: { ...aggregate.lanes, [fact.lane]: opened(entryOf(aggregate.lanes, fact.lane), fact) } };
    case 'artifact.updated':
      return { ...base, generation: fact.generation, lanes: withChunk(aggregate.lanes, fact) };
    case 'call.started':
      return { ...base, calls: { ...aggregate.calls, [fact.call]: startedCall(fact) } };
    case 'call.ended':
      return { ...base, calls: { ...aggregate.calls, [fact.call]: { agent: fact.agent, state: fact.state } } };
    case 'step.recorded':
      return { ...base, steps: (aggregate.steps ?? 0) + 1 };
    case 'remote-run.started':
    case 'agent-step.recorded':
      return base;
  }
}

/**
 * Whether a record with these facts only adds text to open artifacts, written by the attempts that opened them, so that it changes no
 * state, call, attempt or phase of a lane. Workers do not depend on such a record. `before`: the task before the record.
 */
export function onlyContinuesText(before: TaskAggregate | undefined, facts: readonly Fact[]): boolean {
  return before !== undefined && facts.length > 0 && facts.every(fact => continuesLane(before, fact));
}

function continuesLane({ lanes }: TaskAggregate, fact: Fact): boolean {
  if (fact.kind !== 'artifact.updated') return false;
  const { append, lastChunk } = fact.event.artifactUpdate;
  const lane = entryOf(lanes, fact.lane);
  return append === true && lastChunk !== true && lane?.phase === 'open' && lane.attempt === fact.attempt;
}

function created(fact: TaskCreated): TaskAggregate {
  const { task } = fact.event;
  return {
    taskId: task.id,
    contextId: task.contextId,
    state: task.status.state,
    generation: fact.generation,
    at: fact.at,
    role: fact.role,
    profile: fact.profile,
    ...(fact.owner && { owner: fact.owner }),
    ...(hasHistory(fact) && { hasHistory: true }),
    turn: 1,
    messageIds: (task.history ?? []).map(message => message.messageId),
    lanes: {},
    calls: {},
    producers: {},
    foldedSeq: 0,
  };
}

function hasHistory({ earlierTasks = [], request }: TaskCreated): boolean {
  return earlierTasks.length > 0 || forkPointOf(request) !== undefined;
}

function startedCall({ agent, statusPasses }: CallStarted): CallState {
  return { agent, ...(statusPasses && { statusPasses }) };
}

function statusChanged(
  { queued: _queued, ...aggregate }: TaskAggregate,
  { event, generation, at, waitingSince = at }: StatusChanged,
): TaskAggregate {
  const { state, message } = event.statusUpdate.status;
  const inputRequest = state === 'TASK_STATE_INPUT_REQUIRED' && { inputRequest: { n: (aggregate.inputRequest?.n ?? 0) + 1, at } };
  const authRequest = state === 'TASK_STATE_AUTH_REQUIRED' && {
    authRequest: { n: (aggregate.authRequest?.n ?? 0) + 1, at: waitingSince },
  };
  const queued = isQueueNotice(message) && { queued: true as const };
  return { ...aggregate, generation, state, ...inputRequest, ...authRequest, ...queued };
}

/** Notes that the agent of a call waits for credentials, or that it continues. */
function withAuthRequest(
  calls: Record<string, CallState>,
  { call: id, event, resume }: StatusChanged,
): Record<string, CallState> {
  const call = id === undefined ? undefined : entryOf(calls, id);
  if (id === undefined || call === undefined || call.state !== undefined) return calls;
  const { state, message } = event.statusUpdate.status;
  const { authRequest, ...others } = call;
  if (state !== 'TASK_STATE_AUTH_REQUIRED') return authRequest === undefined ? calls : { ...calls, [id]: others };
  const asked = { ...(message && { message }), ...(resume !== undefined && { resume }) };
  return { ...calls, [id]: { ...others, authRequest: JSON.stringify(asked).length > CALL_AUTH_UNITS_MAX ? {} : asked } };
}

/** Drops the producers, lanes and calls of earlier turns, because their inputs are rejected by their turn number. */
function nextTurn({ steps: _steps, ...aggregate }: TaskAggregate, { turn, message }: MessageReceived): TaskAggregate {
  return { ...aggregate, turn, messageIds: [...aggregate.messageIds, message.messageId], producers: {}, lanes: {}, calls: {} };
}

function opened(lane: LaneState | undefined, fact: LaneOpened): LaneState {
  const shown = lane !== undefined && lane.phase !== 'declared';
  // If the same attempt opens the lane again (a snapshot replaces its text), the ordinals continue and only the text starts over.
  const n = lane?.attempt === fact.attempt ? lane.n : 0;
  return { producer: fact.producer, attempt: fact.attempt, phase: shown ? 'replacing' : 'declared', artifact: fact.artifact, n };
}

function withChunk(lanes: Record<string, LaneState>, fact: ArtifactUpdated): Record<string, LaneState> {
  const lane = entryOf(lanes, fact.lane);
  // A whole artifact in one event is not a lane.
  if (lane === undefined && fact.event.artifactUpdate.lastChunk === true) return lanes;
  const { artifact, n, splitOffset, ...state } = lane?.attempt === fact.attempt ? lane : laneOf(fact);
  const folded = fact.chunk ?? { n, splitOffset };
  const next = { ...state, n: folded.n, ...(folded.splitOffset !== undefined && { splitOffset: folded.splitOffset }) };
  if (fact.event.artifactUpdate.lastChunk === true) return { ...lanes, [fact.lane]: { ...next, phase: 'closed' } };
  return { ...lanes, [fact.lane]: { ...next, ...(artifact && { artifact }), phase: 'open' } };
}

/** State of a lane that begins with an artifact event instead of `lane.opened`. */
function laneOf(fact: ArtifactUpdated): LaneState {
  const { artifactId: _id, parts: _parts, ...artifact } = fact.event.artifactUpdate.artifact;
  return { producer: fact.producer, attempt: fact.attempt, phase: 'declared', artifact, n: 0 };
}
