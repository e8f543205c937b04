import { hash } from 'node:crypto';
import type { Message, Metadata, TaskState } from '@hopline/a2a';
import type { ArtifactUpdated, Fact, LaneState, StatusChanged, StatusInput, TaskAggregate } from '@hopline/events';
import type { RejectionReason } from './commands.ts';
import { evolve } from './evolve.ts';
import { pathTo } from './transitions.ts';

/** Facts to store, or the reason why there are none. */
export type Decision = { facts: Fact[]; rejected?: undefined } | { facts: []; rejected: RejectionReason };

export const reject = (rejected: RejectionReason): Decision => ({ facts: [], rejected });

/** Collects the facts of one decision. Each fact is made from the aggregate after the previous fact. */
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

/**
 * The artifact id of a lane: the same for every attempt and relay, and unique over all tasks, because front ends key elements by
 * it (S0-47). A hash instead of a random id keeps the decider pure. The first 128 bits of SHA-256 in the form of a UUID (version
 * 8, RFC 9562).
 */
export function artifactIdOf(taskId: string, lane: string): string {
  const hex = hash('sha256', `${taskId}\n${lane}`);
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** One event of an artifact. Every chunk has the lane's name and description, because clients expect them there (S0-8). */
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
 * Closes lanes that clients have seen and that are still open, each with one empty chunk that has lastChunk: a streamed artifact closes
 * exactly once. A lane that was reopened but received no text is emptied, so that no text of the dead attempt remains.
 */
export function closeLanes(facts: Facts, at: number, only: (lane: LaneState, name: string) => boolean = () => true): void {
  for (const [name, lane] of Object.entries(facts.aggregate.lanes)) {
    if ((lane.phase === 'open' || lane.phase === 'replacing') && only(lane, name)) {
      const append = lane.phase === 'open';
      facts.add(artifactFact(facts.aggregate, name, lane, { parts: [{ text: '' }], append, lastChunk: true }, at));
    }
  }
}

type StatusDetails = Pick<StatusInput, 'message' | 'direct' | 'metadata' | 'resume' | 'history' | 'source'> &
  Pick<StatusChanged, 'call' | 'waitingSince'>;

/**
 * Moves the task to a state through all states in between (`transitions.ts`); adds nothing if no legal path leads there. Every status fact
 * is made here. Only the last step has the details.
 */
export function changeState(facts: Facts, to: TaskState, at: number, details: StatusDetails = {}): void {
  const { state: from, authRequest } = facts.aggregate;
  const path = pathTo(from, to);
  // The supervisor requests credentials again when the agent's turn ends, and an agent may do so every minute. Neither extends the
  // deadline.
  const waitingSince = from === 'TASK_STATE_AUTH_REQUIRED' && to === from ? authRequest?.at : undefined;
  const last = waitingSince === undefined ? details : { ...details, waitingSince };
  for (const [index, state] of path.entries()) {
    facts.add(statusFact(facts.aggregate, state, at, index === path.length - 1 ? last : {}));
  }
}

export function statusFact(aggregate: TaskAggregate, state: TaskState, at: number, details: StatusDetails): StatusChanged {
  const message = details.message && withTaskIds(details.message, aggregate);
  const history = details.history?.map(added => withTaskIds(added, aggregate));
  return {
    kind: 'status.changed',
    at,
    generation: aggregate.generation + 1,
    event: {
      statusUpdate: {
        taskId: aggregate.taskId,
        contextId: aggregate.contextId,
        status: { state, ...(message && { message }), timestamp: timestamp(at) },
        ...(details.metadata && { metadata: details.metadata }),
      },
    },
    ...(message && details.direct && { direct: true }),
    ...(details.call !== undefined && { call: details.call }),
    ...(details.resume !== undefined && { resume: details.resume }),
    ...(history && { history }),
    ...(details.waitingSince !== undefined && { waitingSince: details.waitingSince }),
    ...(details.source && { source: details.source }),
  };
}

/** Gives a message, from either side, the ids of the task, whatever ids its sender used. */
export function withTaskIds(message: Message, { taskId, contextId }: Pick<TaskAggregate, 'taskId' | 'contextId'>): Message {
  return { ...message, taskId, contextId };
}

/** Makes the task fail with a reason that the client sees. `retryable`: the same request may succeed later. */
export function failTask(aggregate: TaskAggregate, reason: string, at: number, retryable = false): Decision {
  const facts = new Facts(aggregate);
  closeLanes(facts, at);
  const metadata: Metadata = { reason, retryable };
  changeState(facts, 'TASK_STATE_FAILED', at, { metadata });
  return facts.decision();
}
