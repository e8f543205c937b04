import type {
  ArtifactUpdated,
  Fact,
  LaneOpened,
  LaneState,
  MessageReceived,
  StatusChanged,
  TaskControl,
  TaskCreated,
} from '@hopline/events';

/** What a fact makes of the control state. Pure and total: every fact in the log was decided, so none is refused here. */
export function evolve(control: TaskControl | undefined, fact: Fact): TaskControl {
  if (fact.kind === 'task.created') return created(fact);
  if (control === undefined) throw new Error(`log of a task begins with ${fact.kind}, not task.created`);
  const base = { ...control, at: fact.at };
  switch (fact.kind) {
    case 'message.received':
      return nextTurn(base, fact);
    case 'status.changed':
      return statusChanged(base, fact);
    case 'lane.opened':
      return { ...base, lanes: { ...control.lanes, [fact.lane]: opened(control.lanes[fact.lane], fact) } };
    case 'artifact.updated':
      return { ...base, generation: fact.generation, lanes: withChunk(control.lanes, fact) };
    case 'call.started':
      return { ...base, calls: { ...control.calls, [fact.call]: { agent: fact.agent } } };
    case 'call.ended':
      return { ...base, calls: { ...control.calls, [fact.call]: { agent: fact.agent, state: fact.state } } };
    case 'step.recorded':
      return { ...base, steps: (control.steps ?? 0) + 1 };
  }
}

function created(fact: TaskCreated): TaskControl {
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
    ...(fact.earlier !== undefined && fact.earlier.length > 0 && { follows: true }),
    turn: 1,
    messageIds: (task.history ?? []).map(message => message.messageId),
    lanes: {},
    calls: {},
    producers: {},
    raw: 0,
  };
}

function statusChanged(control: TaskControl, { event, generation, at, waitsSince = at }: StatusChanged): TaskControl {
  const { state } = event.statusUpdate.status;
  const asked = state === 'TASK_STATE_INPUT_REQUIRED' && { asked: { n: (control.asked?.n ?? 0) + 1, at } };
  const authAsked = state === 'TASK_STATE_AUTH_REQUIRED' && {
    authAsked: { n: (control.authAsked?.n ?? 0) + 1, at: waitsSince },
  };
  return { ...control, generation, state, ...asked, ...authAsked };
}

/** Nobody has spoken in a new turn. What belongs to an earlier one is dropped by its turn, so nothing of it need be remembered. */
function nextTurn({ steps: _steps, ...control }: TaskControl, { turn, message }: MessageReceived): TaskControl {
  return { ...control, turn, messageIds: [...control.messageIds, message.messageId], producers: {}, lanes: {}, calls: {} };
}

function opened(lane: LaneState | undefined, fact: LaneOpened): LaneState {
  const shown = lane !== undefined && lane.phase !== 'declared';
  // Opened again within an attempt (a snapshot replaces): the ordinals go on, only the text begins anew.
  const n = lane?.attempt === fact.attempt ? lane.n : 0;
  return { producer: fact.producer, attempt: fact.attempt, phase: shown ? 'replacing' : 'declared', artifact: fact.artifact, n };
}

function withChunk(lanes: Record<string, LaneState>, fact: ArtifactUpdated): Record<string, LaneState> {
  const lane = lanes[fact.lane];
  // A whole artifact in one event is no lane: it is not remembered.
  if (lane === undefined && fact.event.artifactUpdate.lastChunk === true) return lanes;
  const { artifact, n, cut, ...owner } = lane ?? laneOf(fact);
  const folded = fact.chunk ?? { n, cut };
  const next = { ...owner, n: folded.n, ...(folded.cut !== undefined && { cut: folded.cut }) };
  if (fact.event.artifactUpdate.lastChunk === true) return { ...lanes, [fact.lane]: { ...next, phase: 'closed' } };
  return { ...lanes, [fact.lane]: { ...next, ...(artifact && { artifact }), phase: 'open' } };
}

/** A lane that begins with an artifact event instead of being opened. */
function laneOf(fact: ArtifactUpdated): LaneState {
  const { artifactId: _id, parts: _parts, ...artifact } = fact.event.artifactUpdate.artifact;
  return { producer: fact.producer, attempt: fact.attempt, phase: 'declared', artifact, n: 0 };
}
