import {
  type Artifact,
  isPlainText,
  isTerminal,
  type Part,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdateEvent,
} from './types.ts';

/** Rules that every stream must keep, whichever agent wrote it. */
export const VIOLATIONS = {
  'first-event': 'a stream begins with a task or a message',
  'second-task': 'a task event appears only at the head of a stream',
  'unopened-append': 'an append names an artifact that already exists',
  'chunk-after-last': 'no chunk follows lastChunk of an artifact',
  'after-terminal': 'nothing follows the terminal event',
  'second-terminal': 'there is one terminal event',
  'other-id': 'every event names the same task and context',
  'renamed-artifact': 'a chunk that appends repeats the name of its artifact; only a replacement may rename it',
} as const;
export type ViolationRule = keyof typeof VIOLATIONS;
export type Violation = {
  rule: ViolationRule /** Index of the event among all that were added. */;
  index: number;
  artifactId?: string;
};

export type FoldedArtifact = Artifact & {
  /** All text parts in order, joined without a separator. */
  text: string;
  /** True once `lastChunk` was received. */
  closed: boolean;
};

/**
 * The reference client: folds the events of a task into what a client must show, and notes every violation of the rules of a
 * stream. The end-to-end tests use it as their oracle. Decode the dialect first.
 */
export class Fold {
  readonly artifacts = new Map<string, FoldedArtifact>();
  readonly violations: Violation[] = [];
  readonly taskIds = new Set<string>();
  readonly contextIds = new Set<string>();
  /** The task with status, history and metadata folded in; its artifacts are in `artifacts`. */
  task: Task | undefined;
  message: Extract<StreamResponse, { message: unknown }>['message'] | undefined;
  count = 0;
  ended = false;
  #head: 'open' | 'resumed' | 'passed' = 'open';

  add(event: StreamResponse): this {
    const head = this.#head;
    this.#head = 'passed';
    const index = this.count;
    this.count += 1;
    const isTask = 'task' in event;
    const isMessage = 'message' in event;
    if (head === 'open' && !isTask && !isMessage) this.#note('first-event', index);
    if (head === 'passed' && isTask) this.#note('second-task', index);
    // The snapshot at the head of a resumed stream may show once more that the task has ended.
    if (this.ended && !(head === 'resumed' && isTask)) this.#note('after-terminal', index);
    if (isTask) this.#snapshot(event.task, index);
    else if (isMessage) this.message = event.message;
    else if ('statusUpdate' in event) this.#status(event.statusUpdate, index);
    else this.#artifact(event.artifactUpdate, index);
    return this;
  }

  /**
   * Call it after a disconnect. The next events then come from a new stream of the same task, which starts at a cursor or with a snapshot.
   */
  resume(): this {
    this.#head = 'resumed';
    return this;
  }

  textOf(name: string): string {
    return [...this.artifacts.values()]
      .filter(artifact => artifact.name === name)
      .map(artifact => artifact.text)
      .join('');
  }

  #snapshot(task: Task, index: number): void {
    this.#ids(task.id, task.contextId, index);
    this.task = task;
    this.artifacts.clear();
    for (const artifact of task.artifacts ?? []) {
      this.artifacts.set(artifact.artifactId, {
        ...artifact,
        parts: [...artifact.parts],
        text: textOf(artifact.parts),
        closed: false,
      });
    }
    this.ended = isTerminal(task.status.state);
  }

  #status(update: Extract<StreamResponse, { statusUpdate: unknown }>['statusUpdate'], index: number): void {
    this.#ids(update.taskId, update.contextId, index);
    if (this.task !== undefined) {
      this.task = { ...this.task, status: update.status, metadata: { ...this.task.metadata, ...update.metadata } };
    }
    if (!isTerminal(update.status.state)) return;
    if (this.ended) this.#note('second-terminal', index);
    this.ended = true;
  }

  #artifact(update: TaskArtifactUpdateEvent, index: number): void {
    this.#ids(update.taskId, update.contextId, index);
    const { artifact } = update;
    const known = this.artifacts.get(artifact.artifactId);
    if (known?.closed === true) this.#note('chunk-after-last', index, artifact.artifactId);
    if (update.append === true && known !== undefined && known.name !== artifact.name)
      this.#note('renamed-artifact', index, artifact.artifactId);
    if (update.append === true && known === undefined) this.#note('unopened-append', index, artifact.artifactId);
    const closed = update.lastChunk === true;
    if (update.append !== true || known === undefined) {
      this.artifacts.set(artifact.artifactId, { ...artifact, parts: [...artifact.parts], text: textOf(artifact.parts), closed });
      return;
    }
    append(known.parts, artifact.parts);
    known.text += textOf(artifact.parts);
    known.closed = closed;
  }

  #ids(taskId: string, contextId: string, index: number): void {
    this.taskIds.add(taskId);
    this.contextIds.add(contextId);
    if (this.taskIds.size > 1 || this.contextIds.size > 1) this.#note('other-id', index);
  }

  #note(rule: ViolationRule, index: number, artifactId?: string): void {
    this.violations.push({ rule, index, ...(artifactId !== undefined && { artifactId }) });
  }
}

export function foldEvents(events: Iterable<StreamResponse>): Fold {
  const fold = new Fold();
  for (const event of events) fold.add(event);
  return fold;
}

export function textOf(parts: readonly Part[]): string {
  let text = '';
  for (const part of parts) text += part.text ?? '';
  return text;
}

/** Appends parts in place; plain text continues the last plain text part. */
function append(parts: Part[], more: readonly Part[]): void {
  for (const part of more) {
    const last = parts.at(-1);
    if (last !== undefined && isPlainText(last) && isPlainText(part)) parts[parts.length - 1] = { text: last.text + part.text };
    else parts.push(part);
  }
}
