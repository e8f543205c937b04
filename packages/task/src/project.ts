import { type Artifact, isTerminal, type Message, type Part, type Task, type TaskArtifactUpdateEvent } from '@hopline/a2a';
import type { Fact, StatusChanged } from '@hopline/events';

/** The task as a client knows it after some fact: what `tasks/get` answers and what a snapshot frame holds. */
export type TaskView = {
  task: Task;
  /** Generation of the newest event in the view. */
  generation: number;
  /** The message of the status is the whole answer: the agent made no task. */
  direct?: true;
  /** Ids of artifacts that leave the task when it has ended. */
  transitory?: readonly string[];
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
      const { generation, direct } = fact;
      return { ...kept(view), task: withStatus(view, fact), generation, ...(direct && { direct }) };
    }
    case 'artifact.updated': {
      const { generation, event, transitory } = fact;
      const artifacts = withUpdate(view.task.artifacts ?? [], event.artifactUpdate);
      const next = { ...kept(view), task: { ...view.task, artifacts }, generation };
      return transitory ? { ...next, transitory: withId(view.transitory, event.artifactUpdate.artifact.artifactId) } : next;
    }
    default:
      return view;
  }
}

function kept({ transitory }: TaskView): Pick<TaskView, 'transitory'> {
  return transitory === undefined ? {} : { transitory };
}

function withStatus({ task, transitory = [] }: TaskView, { event, history = [] }: StatusChanged): Task {
  const { status, metadata } = event.statusUpdate;
  const next = { ...task, status, ...(metadata && { metadata: { ...task.metadata, ...metadata } }) };
  if (history.length > 0) next.history = history.reduce(withMessage, task.history ?? []);
  if (transitory.length > 0 && isTerminal(status.state) && next.artifacts)
    next.artifacts = next.artifacts.filter(({ artifactId }) => !transitory.includes(artifactId));
  return next;
}

function withMessage(history: Message[], message: Message): Message[] {
  return history.some(({ messageId }) => messageId === message.messageId) ? history : [...history, message];
}

function withId(ids: readonly string[] = [], id: string): readonly string[] {
  return ids.includes(id) ? ids : [...ids, id];
}

/** What an agent asked stands in the history before what the user answered. */
function withStatusMessage(task: Task): Message[] {
  const history = task.history ?? [];
  const said = task.status.message;
  return said === undefined ? history : withMessage(history, said);
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
