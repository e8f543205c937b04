import {
  type Artifact,
  isPlainText,
  isTerminal,
  type Message,
  type Part,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskState,
} from '@hopline/a2a';
import {
  type ArtifactUpdated,
  type Fact,
  type FactRecord,
  isQueueNotice,
  isVisible,
  type StatusChanged,
  type TaskAggregate,
} from '@hopline/events';

/** The task as clients see it: the result of `tasks/get` and the content of a snapshot frame. */
export type TaskView = {
  task: Task;
  /** Generation of the newest event in the view. */
  generation: number;
  /** True if the agent created no task: the message of the status is the whole answer. */
  direct?: true;
  /** Ids of artifacts that leave the task when it ends. */
  transitory?: readonly string[];
};

/**
 * Applies a fact to the client's view. Pure; unchanged members are shared. Adjacent text of an artifact is merged, so that a task of 4,000
 * tokens has one part instead of 4,000. Token text never enters the history.
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

/** Copies that only the builder's own view contains, so that they may be changed. */
type WritableCopies = {
  artifacts: Artifact[];
  /** Index of the first artifact with each id. */
  indexes: Map<string, number>;
  /** Artifacts whose parts are copied, too. */
  grown: WeakSet<Artifact>;
  transitory: string[];
  transitoryIds: Set<string>;
};

/**
 * Folds the records or facts of a task, to the same view as `projectRecord`. A new view for each fact would copy all artifacts every time,
 * so the cost of a long task would be quadratic. Instead, the builder changes its own copies in place until its view is read.
 */
export class TaskViewBuilder {
  #view: TaskView | undefined;
  #writable: WritableCopies | undefined;

  /** The view after the newest fact. It does not change. */
  get view(): TaskView | undefined {
    this.#writable = undefined;
    return this.#view;
  }

  /** The state of the task after the newest fact. */
  get state(): TaskState | undefined {
    return this.#view?.task.status.state;
  }

  /** Applies the facts of one record. `onFact` is called after each. */
  add({ facts, aggregate }: FactRecord, onFact: (fact: Fact) => void = () => {}): void {
    if (facts[0]?.kind !== 'task.created') this.#view ??= seedView(aggregate, facts);
    for (const fact of facts) {
      this.addFact(fact);
      onFact(fact);
    }
  }

  /** Removes the artifacts that were applied so far. */
  dropArtifacts(): void {
    const view = this.#view;
    if (view?.task.artifacts !== undefined) this.#view = { ...view, task: { ...view.task, artifacts: [] } };
  }

  /** Applies a fact, as `project` does. */
  addFact(fact: Fact): void {
    const view = this.#view;
    this.#view = fact.kind === 'artifact.updated' && view !== undefined ? this.#updated(view, fact) : project(view, fact);
  }

  #updated(view: TaskView, { event, generation, transitory: isTransitory }: ArtifactUpdated): TaskView {
    // A status that ends the task, or another task.created, replaces the artifacts.
    if (this.#writable === undefined || this.#writable.artifacts !== view.task.artifacts) this.#writable = writableCopiesOf(view);
    const { artifacts, indexes, grown, transitory, transitoryIds } = this.#writable;
    const { artifact, append } = event.artifactUpdate;
    const { artifactId } = artifact;
    const index = indexes.get(artifactId);
    if (index === undefined) indexes.set(artifactId, artifacts.push(artifact) - 1);
    else if (append !== true) artifacts[index] = artifact;
    else {
      let known = artifacts[index]!;
      if (!grown.has(known)) {
        known = { ...known, parts: [...known.parts] };
        artifacts[index] = known;
        grown.add(known);
      }
      pushParts(known.parts, artifact.parts);
    }
    if (isTransitory && !transitoryIds.has(artifactId)) {
      transitoryIds.add(artifactId);
      transitory.push(artifactId);
    }
    const task = view.task.artifacts === artifacts ? view.task : { ...view.task, artifacts };
    return { task, generation, ...(transitory.length > 0 && { transitory }) };
  }
}

function writableCopiesOf({ task, transitory = [] }: TaskView): WritableCopies {
  const artifacts = [...(task.artifacts ?? [])];
  const indexes = new Map<string, number>();
  for (const [index, { artifactId }] of artifacts.entries()) if (!indexes.has(artifactId)) indexes.set(artifactId, index);
  return { artifacts, indexes, grown: new WeakSet(), transitory: [...transitory], transitoryIds: new Set(transitory) };
}

/** Member of the metadata of a task whose first events were removed by retention. */
const PARTIAL = 'hopline.partial';

function seedView(aggregate: TaskAggregate, facts: Fact[]): TaskView {
  const { taskId, contextId, state, at, generation } = aggregate;
  const visible = facts.filter(isVisible).length;
  const status = { state, timestamp: new Date(at).toISOString() };
  const task = { id: taskId, contextId, status, metadata: { [PARTIAL]: true } };
  return { task, generation: generation - visible };
}

function kept({ transitory }: TaskView): Pick<TaskView, 'transitory'> {
  return transitory === undefined ? {} : { transitory };
}

function withStatus({ task, transitory = [] }: TaskView, { event, history = [] }: StatusChanged): Task {
  const { status, metadata } = event.statusUpdate;
  const next = { ...task, status, ...(metadata && { metadata: { ...task.metadata, ...metadata } }) };
  if (history.length > 0) next.history = history.reduce(withMessage, task.history ?? []);
  if (transitory.length > 0 && isTerminal(status.state) && next.artifacts) {
    const leaving = new Set(transitory);
    next.artifacts = next.artifacts.filter(({ artifactId }) => !leaving.has(artifactId));
  }
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
  return message === undefined || isQueueNotice(message) ? history : withMessage(history, message);
}

function withUpdate(artifacts: Artifact[], update: TaskArtifactUpdateEvent): Artifact[] {
  const index = artifacts.findIndex(artifact => artifact.artifactId === update.artifact.artifactId);
  const known = artifacts[index];
  if (known === undefined) return [...artifacts, update.artifact];
  const next = update.append === true ? { ...known, parts: appendParts(known.parts, update.artifact.parts) } : update.artifact;
  return artifacts.with(index, next);
}

function appendParts(parts: Part[], more: Part[]): Part[] {
  const all = [...parts];
  pushParts(all, more);
  return all;
}

/** Appends parts in place; text that follows text is merged with it. */
function pushParts(parts: Part[], more: Part[]): void {
  const last = parts.at(-1);
  const [first] = more;
  const isMerged = last !== undefined && first !== undefined && isPlainText(last) && isPlainText(first);
  if (isMerged) parts[parts.length - 1] = { text: last.text + first.text };
  for (let index = isMerged ? 1 : 0; index < more.length; index += 1) parts.push(more[index]!);
}
