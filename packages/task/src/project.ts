import type { Artifact, Message, Part, Task, TaskArtifactUpdateEvent } from '@hopline/a2a';
import type { Fact } from '@hopline/events';

/** The task as a client knows it after some fact: what `tasks/get` answers and what a snapshot frame holds. */
export type TaskView = {
  task: Task;
  /** Generation of the newest event in the view. */
  generation: number;
  /** The message of the status is the whole answer: the agent made no task. */
  direct?: true;
};

/**
 * What a fact makes of the client's view. Pure; shares what did not change. Text of an artifact is kept merged in one part: a task of 4,000 tokens
 * has one part, not 4,000. Token text never enters the history.
 */
export function project(view: TaskView | undefined, fact: Fact): TaskView {
  if (fact.kind === 'task.created') return { task: fact.event.task, generation: fact.generation };
  if (view === undefined) throw new Error(`log of a task begins with ${fact.kind}, not task.created`);
  switch (fact.kind) {
    case 'message.received':
      return { ...view, task: { ...view.task, history: [...withStatusMessage(view.task), fact.message] } };
    case 'status.changed': {
      const { status, metadata } = fact.event.statusUpdate;
      const merged = metadata && { metadata: { ...view.task.metadata, ...metadata } };
      const direct = fact.direct && { direct: fact.direct };
      return { task: { ...view.task, status, ...merged }, generation: fact.generation, ...direct };
    }
    case 'artifact.updated': {
      const artifacts = withUpdate(view.task.artifacts ?? [], fact.event.artifactUpdate);
      return { task: { ...view.task, artifacts }, generation: fact.generation };
    }
    default:
      return view;
  }
}

/** What an agent asked stands in the history before what the user answered. */
function withStatusMessage(task: Task): Message[] {
  const history = task.history ?? [];
  const said = task.status.message;
  return said === undefined || history.some(message => message.messageId === said.messageId) ? history : [...history, said];
}

function withUpdate(artifacts: Artifact[], update: TaskArtifactUpdateEvent): Artifact[] {
  const index = artifacts.findIndex(artifact => artifact.artifactId === update.artifact.artifactId);
  const known = artifacts[index];
  if (known === undefined) return [...artifacts, update.artifact];
  const next = update.append === true ? { ...known, parts: appendParts(known.parts, update.artifact.parts) } : update.artifact;
  return artifacts.with(index, next);
}

function appendParts(parts: Part[], more: Part[]): Part[] {
  const last = parts.at(-1);
  const [first, ...rest] = more;
  if (last === undefined || first === undefined || !isPlainText(last) || !isPlainText(first)) return [...parts, ...more];
  return [...parts.slice(0, -1), { text: last.text + first.text }, ...rest];
}

function isPlainText(part: Part): part is { text: string } {
  return part.text !== undefined && Object.keys(part).length === 1;
}
