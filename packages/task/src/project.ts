import { type Artifact, isTerminal, type Message, type Part, type Task, type TaskArtifactUpdateEvent } from '@hopline/a2a';
import { type Fact, type FactRecord, isVisible, type StatusChanged, type TaskAggregate } from '@hopline/events';

/** The task as clients see it: the result of `tasks/get` and the content of a snapshot frame. */
export type TaskView = {
  task: Task;
  /** Generation of the newest event in the view. */
  generation: number;
  /** The agent created no task: the message of the status is the whole answer. */
  direct?: true;
  /** Ids of artifacts that leave the task when it ends. */
  transitory?: readonly string[];
};

/**
 * Applies a fact to the client's view. Pure; unchanged members are shared. Adjacent text of an artifact is merged, so that a task
 * of 4,000 tokens has one part, not 4,000. Token text never enters the history.
 */
export function project(view: TaskView | undefined, fact: Fact): TaskView {
  if (fact.kind === 'task.created') return { task: fact.event.task, generation: fact.generation };
  if (view === undefined) throw new Error(`the log of a task begins with ${fact.kind}, expected task.created`);
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

/**
 * Applies the facts of one record. If retention removed the beginning of the log, the view begins with the aggregate of the
 * oldest record.
 */
export function projectRecord(
  view: TaskView | undefined,
  { facts, aggregate }: FactRecord,
  onFact: (view: TaskView, fact: Fact) => void = () => {},
): TaskView {
  let folded = view ?? (facts[0]?.kind === 'task.created' ? undefined : seedView(aggregate, facts));
  for (const fact of facts) {
    folded = project(folded, fact);
    onFact(folded, fact);
  }
  return folded ?? seedView(aggregate, facts);
}

function seedView(aggregate: TaskAggregate, facts: Fact[]): TaskView {
  const { taskId, contextId, state, at, generation } = aggregate;
  const visible = facts.filter(isVisible).length;
  const task = { id: taskId, contextId, status: { state, timestamp: new Date(at).toISOString() } };
  return { task, generation: generation - visible };
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

/** The agent's question precedes the user's answer in the history. */
function withStatusMessage(task: Task): Message[] {
  const history = task.history ?? [];
  const { message } = task.status;
  return message === undefined ? history : withMessage(history, message);
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
