import type { Metadata, TaskState } from '@hopline/a2a';
import type { ArtifactUpdated, Fact, LaneState, StatusChanged, StatusInput, TaskAggregate } from '@hopline/events';
import { artifactIdOf } from './artifact-id.ts';
import type { RejectionReason } from './commands.ts';
import { evolve } from './evolve.ts';
import { pathTo } from './transitions.ts';

/** Facts to store, or the reason why there is none. */
export type Decision = { facts: Fact[]; rejected?: undefined } | { facts: []; rejected: RejectionReason };

export const reject = (dropped: RejectionReason): Decision => ({ facts: [], rejected: dropped });

/** Collects the facts of one decision; each one sees what those before it made of the task. */
export class Facts {
  readonly facts: Fact[] = [];
  aggregate: TaskAggregate;

  constructor(aggregate: TaskAggregate) {
    this.aggregate = aggregate;
  }

  add(fact: Fact): this {
    this.facts.push(fact);
    this.aggregate = evolve(this.aggregate, fact);
    return this;
  }

  decision(): Decision {
    return this.facts.length > 0 ? { facts: this.facts } : reject('no change');
  }
}

export function timestamp(at: number): string {
  return new Date(at).toISOString();
}

/** One event of an artifact, with the lane's name and description on every chunk (S0-8). */
export function artifactFact(
  aggregate: TaskAggregate,
  lane: string,
  state: Pick<LaneState, 'producer' | 'attempt' | 'artifact'>,
  update: Pick<ArtifactUpdated['event']['artifactUpdate'], 'append' | 'lastChunk'> &
    Pick<ArtifactUpdated['event']['artifactUpdate']['artifact'], 'parts'>,
  at: number,
): ArtifactUpdated {
  const { id = artifactIdOf(aggregate.taskId, lane), transitory, separateClose: _separateClose, ...shown } = state.artifact ?? {};
  return {
    kind: 'artifact.updated',
    at,
    generation: aggregate.generation + 1,
    event: {
      artifactUpdate: {
        taskId: aggregate.taskId,
        contextId: aggregate.contextId,
        artifact: { artifactId: id, ...shown, parts: update.parts },
        append: update.append === true,
        lastChunk: update.lastChunk === true,
      },
    },
    lane,
    producer: state.producer,
    attempt: state.attempt,
    ...(transitory && { transitory }),
  };
}

/**
 * Closes lanes that a client has seen and that are still open: one empty chunk with lastChunk, because a streamed artifact closes exactly once (C-2).
 * A lane that was opened again and got no text is emptied: its dead attempt's text must not stand.
 */
export function closeLanes(facts: Facts, at: number, only: (lane: LaneState, name: string) => boolean = () => true): void {
  for (const [name, lane] of Object.entries(facts.aggregate.lanes)) {
    if ((lane.phase === 'open' || lane.phase === 'replacing') && only(lane, name)) {
      const append = lane.phase === 'open';
      facts.add(artifactFact(facts.aggregate, name, lane, { parts: [{ text: '' }], append, lastChunk: true }, at));
    }
  }
}

type Said = Pick<StatusInput, 'message' | 'direct' | 'metadata' | 'resume' | 'history' | 'source'> &
  Pick<StatusChanged, 'call' | 'waitingSince'>;

/**
 * Moves the task to a state over every state between (`transitions.ts`); adds nothing where no legal life leads there. The only place where a change of state becomes a fact.
 * Only the last step carries what was said.
 */
export function changeState(facts: Facts, to: TaskState, at: number, said: Said = {}): void {
  const { state: from, authRequest } = facts.aggregate;
  const path = pathTo(from, to);
  // A supervisor asks anew when the agent's turn ends, and an agent may do so every minute: neither gives the task more time.
  const waitingSince = from === 'TASK_STATE_AUTH_REQUIRED' && to === from ? authRequest?.at : undefined;
  const last = waitingSince === undefined ? said : { ...said, waitingSince };
  for (const [index, state] of path.entries()) {
    facts.add(statusFact(facts.aggregate, state, at, index === path.length - 1 ? last : {}));
  }
}

function statusFact(aggregate: TaskAggregate, state: TaskState, at: number, said: Said): StatusChanged {
  const { taskId, contextId } = aggregate;
  const message = said.message && { ...said.message, taskId, contextId };
  const history = said.history?.map(added => ({ ...added, taskId, contextId }));
  return {
    kind: 'status.changed',
    at,
    generation: aggregate.generation + 1,
    event: {
      statusUpdate: {
        taskId: aggregate.taskId,
        contextId: aggregate.contextId,
        status: { state, ...(message && { message }), timestamp: timestamp(at) },
        ...(said.metadata && { metadata: said.metadata }),
      },
    },
    ...(message && said.direct && { direct: true }),
    ...(said.call !== undefined && { call: said.call }),
    ...(said.resume !== undefined && { resume: said.resume }),
    ...(history && { history }),
    ...(said.waitingSince !== undefined && { waitingSince: said.waitingSince }),
    ...(said.source && { source: said.source }),
  };
}

/** Ends the task because a bound was exceeded: visible, with a reason, never a silent loss. `retryable`: the same request may well succeed. */
export function failTask(aggregate: TaskAggregate, reason: string, at: number, retryable = false): Decision {
  const facts = new Facts(aggregate);
  closeLanes(facts, at);
  const metadata: Metadata = { reason, retryable };
  changeState(facts, 'TASK_STATE_FAILED', at, { metadata });
  return facts.decision();
}
