import {
  type Artifact,
  approvalRequestOf,
  failureReason,
  type InterruptedState,
  isInProgress,
  isInterrupted,
  isObject,
  isTerminal,
  type Message,
  type Metadata,
  type Part,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskState,
  type TaskStatus,
  textOf,
} from '@hopline/a2a/client';
import { kindOfArtifact } from '@hopline/profiles/kinds';
import type { ClientView, ViewQuestion, ViewUsage } from './client-view.ts';
import type { TextLabel, ViewChange } from './view-change.ts';
import { FILE_BYTES_MAX, ViewFiles } from './view-files.ts';
import { ViewTexts } from './view-texts.ts';
import { agentOf, ViewTools } from './view-tools.ts';

/** An item of a stream: an event of A2A 1.0 with its cursor, or a gap, after which the next event is the current task. */
export type ViewItem = { event: StreamResponse; cursor?: string | undefined } | { gap: unknown };

export type ViewFoldOptions = {
  /** The stream continues a task with a message, so it begins with the task, whose content so far belongs to earlier turns. */
  continues?: boolean;
  /** The stream begins within a turn. Whole answers are not compared with its texts, because the beginnings of the texts are missing. */
  resumed?: boolean;
  /**
   * Artifacts with these names are part of the answer. If the list is present, even if it is empty, every other artifact whose name no
   * profile knows is a file, whether or not the stream has named an answer.
   */
  answerNames?: readonly string[];
  /** Replaces FILE_BYTES_MAX. */
  fileBytesMax?: number;
};

/** How an artifact arrived: whole in a snapshot of the task, or as an update. */
type HowShown = { isSnapshot: boolean; append: boolean; lastChunk: boolean };

type Role = 'text' | 'plan' | 'result' | 'call-start' | 'call-end' | 'progress' | 'file';

/**
 * Folds the stream of a task into its view. `add` returns what changed, in order; `view` is the result. In streams of Hopline, plans,
 * notices and the repeated whole answer are recognized by artifact names and metadata. In streams of other servers, all text is the answer.
 */
export class ViewFold {
  readonly #texts: ViewTexts;
  readonly #tools: ViewTools;
  readonly #files: ViewFiles;
  readonly #roles = new Map<string, Role>();
  /** Whole answers that have not ended, by artifact id. */
  readonly #results = new Map<string, { label: TextLabel; text: string }>();
  #changes: ViewChange[] = [];
  #view: ClientView | undefined;
  #taskId: string | undefined;
  #contextId: string | undefined;
  #state: TaskState = 'TASK_STATE_SUBMITTED';
  #hasState = false;
  #turn = 1;
  #cursor: string | undefined;
  #progress: string | undefined;
  /** The line is the message of a status, which the next status replaces. */
  #isProgressOfStatus = false;
  #question: ViewQuestion | undefined;
  /** Message of the newest question. */
  #asked: string | undefined;
  #failure: string | undefined;
  #usage: ViewUsage | undefined;
  #metadata: Metadata | undefined;
  #gaps = 0;
  #isContinued: boolean;
  #isResumed: boolean;
  readonly #answerNames: readonly string[] | undefined;
  /** The server marks its answer or its plan by name, so artifacts with other names are not part of the answer. */
  #namesAnswer = false;
  #hasBegun = false;

  constructor({ continues = false, resumed = false, answerNames, fileBytesMax = FILE_BYTES_MAX }: ViewFoldOptions = {}) {
    this.#isContinued = continues;
    this.#isResumed = resumed;
    this.#answerNames = answerNames;
    const change = (one: ViewChange) => void this.#changes.push(one);
    this.#texts = new ViewTexts(change);
    this.#tools = new ViewTools(change);
    this.#files = new ViewFiles(change, fileBytesMax);
  }

  get view(): ClientView {
    this.#view ??= {
      taskId: this.#taskId,
      contextId: this.#contextId,
      state: this.#state,
      turn: this.#turn,
      cursor: this.#cursor,
      answer: this.#texts.answer,
      texts: this.#texts.list,
      plan: this.#texts.plan,
      tools: this.#tools.list,
      files: this.#files.list,
      progress: this.#progress,
      question: this.#question,
      failure: this.#failure,
      usage: this.#usage,
      metadata: this.#metadata,
      gaps: this.#gaps,
    };
    return this.#view;
  }

  add(item: ViewItem): readonly ViewChange[] {
    this.#view = undefined;
    if ('gap' in item) {
      this.#gaps += 1;
      // The task that follows has all of its texts.
      this.#isResumed = false;
      this.#isContinued = false;
      return [{ kind: 'gap' }];
    }
    const { event, cursor } = item;
    this.#cursor = cursor ?? this.#cursor;
    if ('task' in event) this.#task(event.task);
    else if ('message' in event) this.#message(event.message);
    else if ('statusUpdate' in event) this.#statusUpdate(event.statusUpdate);
    else this.#artifactUpdate(event.artifactUpdate);
    const changes = this.#changes;
    this.#changes = [];
    return changes;
  }

  /** The stream has ended, although the task may continue: completes the texts and files so far. */
  end(): readonly ViewChange[] {
    this.#view = undefined;
    this.#completeContent();
    const changes = this.#changes;
    this.#changes = [];
    return changes;
  }

  /** Drops the content of a file that its reader has stored. The file is not reported again. */
  forgetFile(id: string): void {
    this.#view = undefined;
    this.#files.forget(id);
  }

  #task(task: Task): void {
    this.#begin(task.id, task.contextId);
    const artifacts = task.artifacts ?? [];
    const message = task.status.message;
    const ids = new Set(artifacts.map(({ artifactId }) => artifactId));
    if (message !== undefined) ids.add(message.messageId);
    // A transitory text is removed at the end of the task, and a message with the text remains.
    const isKept = isTerminal(task.status.state) && message !== undefined && textOf(message.parts) === this.#texts.answer;
    if (this.#hasBegun && !isKept) this.#texts.keepOnly(ids);
    if (this.#hasBegun) this.#files.keepOnly(ids);
    if (isInProgress(task.status.state) && isInterrupted(this.#state)) this.#beginTurn();
    for (const artifact of artifacts) this.#artifact(artifact, { isSnapshot: true, append: false, lastChunk: false });
    this.#hasBegun = true;
    if (this.#isContinued) {
      this.#isContinued = false;
      this.#texts.endAll();
      this.#files.endAll();
      this.#changes = this.#changes.filter(({ kind }) => kind === 'task');
      if (isInProgress(task.status.state)) this.#beginTurn();
      // The task is still in the state in which the question left it. The next event begins the turn.
      if (isInterrupted(task.status.state)) {
        this.#state = task.status.state;
        return;
      }
    }
    this.#status(task.status, task.metadata);
  }

  #message(message: Message): void {
    this.#begin(message.taskId, message.contextId);
    const label = labelOf(message.messageId, 'answer', message);
    this.#texts.update(label, this.#turn, textOf(message.parts), true);
    this.#texts.end(message.messageId);
    this.#setState('TASK_STATE_COMPLETED', undefined);
  }

  #statusUpdate(update: { taskId: string; contextId: string; status: TaskStatus; metadata?: Metadata }): void {
    this.#begin(update.taskId, update.contextId);
    if (isInProgress(update.status.state) && isInterrupted(this.#state)) this.#beginTurn();
    this.#status(update.status, update.metadata);
  }

  #artifactUpdate({ taskId, contextId, artifact, append = false, lastChunk = false }: TaskArtifactUpdateEvent): void {
    this.#begin(taskId, contextId);
    if (isInterrupted(this.#state)) {
      this.#beginTurn();
      this.#setState('TASK_STATE_WORKING', undefined);
    }
    this.#artifact(artifact, { isSnapshot: false, append, lastChunk });
  }

  #begin(taskId: string | undefined, contextId: string | undefined): void {
    this.#contextId ??= contextId;
    if (taskId === undefined || this.#taskId !== undefined) return;
    this.#taskId = taskId;
    this.#changes.push({ kind: 'task', taskId, contextId: contextId ?? '' });
  }

  #beginTurn(): void {
    this.#turn += 1;
    this.#question = undefined;
    this.#failure = undefined;
    this.#texts.beginTurn();
    this.#changes.push({ kind: 'turn', turn: this.#turn });
  }

  #artifact(artifact: Artifact, how: HowShown): void {
    const { artifactId } = artifact;
    const known = this.#roles.get(artifactId);
    const role = known ?? this.#roleOf(artifact);
    if (known === undefined) this.#roles.set(artifactId, role);
    if (role === 'call-start') this.#tools.start(artifact, this.#turn);
    else if (role === 'call-end') this.#tools.end(artifact, this.#turn);
    else if (role === 'progress') {
      this.#isProgressOfStatus = false;
      this.#setProgress(textOf(artifact.parts).trim(), agentOf(artifact));
    } else {
      const { text, others } = role === 'file' ? { text: '', others: artifact.parts } : this.#split(artifact);
      if (role === 'result') this.#result(artifact, how);
      else if (role !== 'file') this.#text(artifact, role, text, how);
      this.#file(artifact, others, how, known !== undefined);
    }
  }

  #file(artifact: Artifact, parts: readonly Part[], { isSnapshot, append, lastChunk }: HowShown, isKnown: boolean): void {
    if (isSnapshot) this.#files.snapshot(artifact, this.#turn, parts);
    else this.#files.update(artifact, this.#turn, parts, { isReplacement: !append, hasBeginning: isKnown || !append });
    if (lastChunk) this.#files.end(artifact.artifactId);
  }

  #roleOf(artifact: Artifact): Role {
    const kind = kindOfArtifact(artifact);
    this.#namesAnswer ||= kind === 'answer' || kind === 'plan';
    if (kind === 'answer' || (kind !== 'result' && this.#isChosen(artifact))) return 'text';
    if (kind !== undefined) return kind;
    const isNamed = artifact.name !== undefined && artifact.name !== '';
    return isNamed && (this.#namesAnswer || this.#answerNames !== undefined) ? 'file' : 'text';
  }

  #isChosen({ name = '' }: Artifact): boolean {
    return this.#answerNames?.includes(name) === true;
  }

  /**
   * The text of the answer and the other parts. A text with a file name or of another type, such as HTML, is a file, unless the reader has chosen
   * the artifact.
   */
  #split(artifact: Artifact): { text: string; others: readonly Part[] } {
    let text = '';
    const others: Part[] = [];
    for (const part of artifact.parts) {
      if (isPlain(part) || (part.text !== undefined && this.#isChosen(artifact))) text += part.text ?? '';
      else others.push(part);
    }
    return { text, others };
  }

  #text(artifact: Artifact, role: Role, text: string, { isSnapshot, append, lastChunk }: HowShown): void {
    const known = this.#texts.labelOf(artifact.artifactId);
    if (text === '' && known === undefined) return;
    // If a whole answer precedes this text in a snapshot, it belongs to the texts before it.
    if (known === undefined) this.#reconcileAll();
    const label = known ?? labelOf(artifact.artifactId, role === 'plan' ? 'plan' : 'answer', artifact);
    if (isSnapshot) this.#texts.snapshot(label, this.#turn, text);
    else this.#texts.update(label, this.#turn, text, !append);
    if (lastChunk) this.#texts.end(label.id);
  }

  #result(artifact: Artifact, { isSnapshot, append, lastChunk }: HowShown): void {
    if (this.#isResumed) return;
    const { artifactId } = artifact;
    const before = append ? (this.#results.get(artifactId)?.text ?? '') : '';
    const text = before + textOf(artifact.parts.filter(isPlain));
    // The snapshot after a gap repeats a whole answer that has already been compared.
    if (isSnapshot && this.#results.get(artifactId)?.text === '') return;
    this.#results.set(artifactId, { label: labelOf(artifactId, 'answer', artifact), text });
    if (lastChunk) this.#reconcile(artifactId);
  }

  #reconcileAll(): void {
    for (const id of this.#results.keys()) this.#reconcile(id);
  }

  #reconcile(artifactId: string): void {
    const result = this.#results.get(artifactId);
    if (result === undefined || result.text === '') return;
    this.#texts.reconcile(result.label, this.#turn, result.text);
    // Keeps the id, and not a second copy of the answer.
    this.#results.set(artifactId, { ...result, text: '' });
  }

  #status(status: TaskStatus, metadata: Metadata | undefined): void {
    const { state, message } = status;
    if (metadata !== undefined) this.#metadata = { ...this.#metadata, ...metadata };
    this.#setUsage(metadata?.usage);
    const text = message === undefined ? '' : textOf(message.parts);
    if (isInProgress(state)) {
      if (text !== '' || this.#isProgressOfStatus) this.#setProgress(text.trim(), message && agentOf(message));
      this.#isProgressOfStatus = text !== '';
    } else {
      this.#completeContent();
      this.#progress = undefined;
      this.#question = undefined;
    }
    if (isInterrupted(state)) this.#ask(state, text, message);
    if (isTerminal(state)) this.#tools.endAll();
    if (state === 'TASK_STATE_COMPLETED' && message !== undefined) this.#lastMessage(message, text);
    const hasFailed = isTerminal(state) && state !== 'TASK_STATE_COMPLETED';
    this.#failure = hasFailed ? failureReason(status, metadata ?? this.#metadata) || undefined : undefined;
    this.#setState(state, this.#failure);
  }

  #ask(state: InterruptedState, text: string, message: Message | undefined): void {
    const isAuth = state === 'TASK_STATE_AUTH_REQUIRED';
    const approval = isAuth ? undefined : approvalRequestOf(message);
    this.#question = { kind: isAuth ? 'auth' : 'input', text, message, ...(approval !== undefined && { approval }) };
    // The snapshot after a gap repeats the question.
    const isRepeated = isInterrupted(this.#state) && this.#asked === message?.messageId;
    this.#asked = message?.messageId;
    if (!isRepeated) this.#changes.push({ kind: 'question', question: this.#question });
  }

  /** The turn has ended: completes the texts and files, including those whose last chunk is missing. */
  #completeContent(): void {
    this.#reconcileAll();
    this.#texts.endAll();
    this.#files.endAll();
  }

  /** Some agents answer only in the message of their last status, and many repeat in it what they have streamed. */
  #lastMessage(message: Message, text: string): void {
    const { messageId } = message;
    if (text === '' || this.#texts.has(messageId) || this.#texts.answer.endsWith(text)) return;
    this.#texts.update(labelOf(messageId, 'answer', message), this.#turn, text, true);
    this.#texts.end(messageId);
  }

  #setProgress(line: string, agent: string | undefined): void {
    if ((this.#progress ?? '') === line) return;
    this.#progress = line === '' ? undefined : line;
    this.#changes.push({ kind: 'progress', line, agent });
  }

  #setUsage(value: unknown): void {
    if (!isObject(value)) return;
    const numbers = Object.entries(value).filter(([, number]) => typeof number === 'number') as [string, number][];
    if (numbers.length === 0 || sameNumbers(this.#usage, numbers)) return;
    this.#usage = Object.fromEntries(numbers);
    this.#changes.push({ kind: 'usage', usage: this.#usage });
  }

  #setState(state: TaskState, reason: string | undefined): void {
    if (state === this.#state && this.#hasState) return;
    this.#hasState = true;
    this.#state = state;
    this.#changes.push({ kind: 'state', state, reason });
  }
}

function sameNumbers(usage: ViewUsage | undefined, numbers: readonly [string, number][]): boolean {
  return usage !== undefined && Object.keys(usage).length === numbers.length && numbers.every(([name, n]) => usage[name] === n);
}

function isPlain({ text, filename, mediaType }: Part): boolean {
  if (text === undefined || filename !== undefined) return false;
  return mediaType === undefined || /^text\/(plain|markdown)\b/i.test(mediaType);
}

function labelOf(id: string, channel: TextLabel['channel'], { metadata }: { metadata?: Metadata }): TextLabel {
  const { sourceAgent, toolCallId } = metadata ?? {};
  return {
    id,
    channel,
    agent: typeof sourceAgent === 'string' ? sourceAgent : undefined,
    callId: typeof toolCallId === 'string' ? toolCallId : undefined,
  };
}
