import { isTime, type Message, type Metadata, type TaskStatus } from '@hopline/a2a';
import { type Fact, type FactRecord, FORK_KEY, type Owner, type Role, type TaskAggregate } from '@hopline/events';
import { artifactIdOf } from '@hopline/task';

/** The ids and names that a recorded task gets. */
export type Binding = {
  taskId: string;
  contextId: string;
  /** Absent: the task has no owner, as if authentication were off. */
  owner?: Owner | undefined;
  /** Absent: the recorded one. */
  role?: Role | undefined;
  /** Added to every recorded time; 0 keeps them. */
  shiftMs: number;
  /** Added to the metadata of the task. */
  metadata?: Metadata | undefined;
};

/**
 * Turns a recorded record of facts into one of another task, or of the same task in another log. Clients see no change except in the ids,
 * and in times and metadata if the binding sets them. Raw sequences in `chunk` remain those of the origin; no input is folded here. Artifact ids that
 * follow from the task and the lane are those of the new task, so that the rules close the same artifacts.
 */
export function rebindRecord({ copied: _copied, ...record }: FactRecord, binding: Binding): FactRecord {
  const { takeover } = record;
  return {
    ...record,
    facts: record.facts.map(fact => rebindFact(fact, binding, record.aggregate.taskId)),
    aggregate: rebindAggregate(record.aggregate, binding),
    startSeq: 0,
    startStoredAt: 0,
    ...(takeover && { takeover: { ...takeover, at: shifted(takeover.at, binding) } }),
  };
}

function rebindAggregate(aggregate: TaskAggregate, binding: Binding): TaskAggregate {
  const { owner: _owner, lastNSeq: _lastNSeq, storedBytes: _storedBytes, hasHistory, ...kept } = aggregate;
  const { taskId, contextId, owner, role = aggregate.role } = binding;
  const history = taskId === aggregate.taskId && hasHistory === true && { hasHistory };
  const rebound = { ...kept, taskId, contextId, role, at: shifted(aggregate.at, binding), foldedSeq: 0 };
  return { ...rebound, ...(owner && { owner }), ...history };
}

function rebindFact(fact: Fact, binding: Binding, origin: string): Fact {
  const at = shifted(fact.at, binding);
  switch (fact.kind) {
    case 'task.created': {
      const { taskId, contextId, owner, role = fact.role } = binding;
      const { owner: _owner, earlierTasks, request, ...kept } = fact;
      // In another task, the earlier tasks and the origin of a fork have other ids or are absent.
      const { [FORK_KEY]: fork, ...others } = request ?? {};
      const isSame = taskId === origin;
      const requestMetadata = isSame && fork !== undefined ? { ...others, [FORK_KEY]: fork } : others;
      const { task } = fact.event;
      const metadata = binding.metadata && { ...task.metadata, ...binding.metadata };
      const history = task.history && { history: task.history.map(message => rebindMessage(message, binding)) };
      const status = rebindStatus(task.status, binding);
      const event = { task: { ...task, id: taskId, contextId, status, ...history, ...(metadata && { metadata }) } };
      const links = { ...(request && { request: requestMetadata }), ...(isSame && earlierTasks && { earlierTasks }) };
      return { ...kept, at, event, role, ...links, ...(owner && { owner }) };
    }
    case 'message.received':
      return { ...fact, at, message: rebindMessage(fact.message, binding) };
    case 'status.changed': {
      const { statusUpdate } = fact.event;
      const { taskId, contextId } = binding;
      const status = rebindStatus(statusUpdate.status, binding);
      return {
        ...fact,
        at,
        event: { statusUpdate: { ...statusUpdate, taskId, contextId, status } },
        ...(fact.history && { history: fact.history.map(message => rebindMessage(message, binding)) }),
        ...(fact.waitingSince !== undefined && { waitingSince: shifted(fact.waitingSince, binding) }),
      };
    }
    case 'artifact.updated': {
      const { artifactUpdate } = fact.event;
      const { taskId, contextId } = binding;
      const { artifactId } = artifactUpdate.artifact;
      const isDerived = artifactId === artifactIdOf(origin, fact.lane);
      const artifact = isDerived
        ? { ...artifactUpdate.artifact, artifactId: artifactIdOf(taskId, fact.lane) }
        : artifactUpdate.artifact;
      return { ...fact, at, event: { artifactUpdate: { ...artifactUpdate, taskId, contextId, artifact } } };
    }
    case 'call.ended':
      return {
        ...fact,
        at,
        ...(fact.message && { message: rebindMessage(fact.message, binding) }),
        ...(fact.history && { history: fact.history.map(message => rebindMessage(message, binding)) }),
      };
    default:
      return { ...fact, at };
  }
}

/** Replaces the task id only in a message that names this task, because an agent's message may belong to a task of the agent's own. */
function rebindMessage(message: Message, { taskId, contextId }: Binding): Message {
  return {
    ...message,
    ...(message.taskId !== undefined && { taskId }),
    ...(message.contextId !== undefined && { contextId }),
  };
}

function rebindStatus(status: TaskStatus, binding: Binding): TaskStatus {
  const { message, timestamp } = status;
  const time = timestamp === undefined ? Number.NaN : Date.parse(timestamp);
  return {
    ...status,
    ...(message && { message: rebindMessage(message, binding) }),
    ...(binding.shiftMs !== 0 && isTime(time) && { timestamp: new Date(shifted(time, binding)).toISOString() }),
  };
}

/** Shifts a time. If the result would be outside of the range of `Date`, it stays unchanged, because a file may contain any number. */
function shifted(time: number, { shiftMs }: Binding): number {
  return isTime(time + shiftMs) ? time + shiftMs : time;
}
