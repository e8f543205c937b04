import { randomUUID } from 'node:crypto';
import {
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
  type TaskStatus,
  textOf,
} from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import { isQueueNotice, TOKEN_COUNTS, type TokenUsage } from '@hopline/events';
import { otherParts, shownMessage, textMessage } from './message-parts.ts';
import { OpenCalls } from './open-calls.ts';
import { NO_TEXT, openQuestion, shownQuestion } from './open-question.ts';
import type { Deltas, Skipped, StatusMeaning } from './options.ts';
import { keptId, RecentIds } from './recent-ids.ts';
import { ARTIFACTS_MAX } from './repeated-texts.ts';
import { StatusTexts } from './status-texts.ts';
import { noticeOfArtifact, noticeOfMetadata, noticeOfPart, noticeOfText, type ToolNotice } from './tool-notice.ts';

/** Message ids kept for deduplication. */
export const RECENT_MESSAGES_MAX = 4096;
/** Name of an empty artifact that marks the end of the answer and is not content (S0-27). */
const END_MARKER = 'current_result';

type Waiting = Omit<Extract<AgentEvent, { type: 'auth-required' }>, 'type'>;

export type ReaderOptions = {
  deltas: Deltas | undefined;
  text: StatusMeaning;
  onSkipped: (what: Skipped) => void;
  /** See StatusTexts. */
  onCumulative: () => void;
  /** Reads the metadata of each status before its state and message. */
  onMetadata?: (metadata: Metadata | undefined) => void;
};

/**
 * Converts the A2A events of a remote agent in one turn to agent events. `take` returns them together, because a generator for each event
 * would cost as much as the rest of a token.
 */
export class EventReader {
  /** Ids of the agent's own task, for cancelling, recovering and continuing it. Clients never see them. */
  ids: { taskId?: string; contextId?: string } = {};
  /** True once a terminal or interrupted event was read. */
  ended = false;
  /** The pending request for credentials. */
  waiting: Waiting | undefined;
  readonly #options: ReaderOptions;
  readonly #recent = new RecentIds(RECENT_MESSAGES_MAX);
  readonly #calls = new OpenCalls();
  readonly #artifacts = new Set<string>();
  /** The parts without text that statuses have shown. */
  readonly #shown = new Set<string>();
  readonly #texts: StatusTexts;
  #events = 0;
  /** True if the agent's state is working and an event has shown it. */
  #isWorking = false;
  #read: AgentEvent[] = [];
  /** Id of the answer's first status message. A history that contains it contains the whole answer. */
  #firstTextId: string | undefined;
  #hasText = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#texts = new StatusTexts(options.deltas, options.onCumulative);
  }

  /** Whether the agent has sent an event. */
  get begun(): boolean {
    return this.#events > 0;
  }

  /** The events read since the last call. */
  take(): AgentEvent[] {
    const events = this.#read;
    this.#read = [];
    return events;
  }

  read(event: StreamResponse): void {
    this.#events += 1;
    if ('task' in event) this.#task(event.task);
    else if ('message' in event) this.#message(event.message);
    else if ('artifactUpdate' in event) this.#artifactUpdate(event.artifactUpdate);
    else {
      const { taskId, contextId, status, metadata } = event.statusUpdate;
      this.remember(taskId, contextId);
      this.status(status, metadata);
    }
  }

  status(status: TaskStatus, metadata?: Metadata): void {
    const { state, message } = status;
    this.#options.onMetadata?.(metadata);
    if (state === 'TASK_STATE_AUTH_REQUIRED') {
      this.#authorize(message);
      return;
    }
    this.waiting = undefined;
    if (!isInProgress(state)) {
      this.end(message);
      const usage = usageOf(metadata?.usage) ?? usageOf(message?.metadata?.usage);
      if (usage !== undefined) this.#read.push({ type: 'usage', usage });
    }
    if (isInterrupted(state)) {
      this.ended = true;
      const request = message ? shownQuestion(shownMessage(message)) : textMessage(NO_TEXT);
      const asked = message && openQuestion(message);
      this.#read.push({ type: 'interrupted', state, message: request, resume: { ...this.ids, ...(asked && { asked }) } });
    } else if (isTerminal(state)) {
      this.ended = true;
      this.#read.push(endEvent(state, message && shownMessage(message), metadata));
    } else {
      const { length } = this.#read;
      if (message !== undefined) this.#working(message, metadata);
      if (state !== 'TASK_STATE_WORKING' || this.#isWorking) return;
      this.#isWorking = true;
      // Not needed if the message itself led to events, which show the same.
      if (this.#read.length === length) this.#read.push({ type: 'working' });
    }
  }

  /** Emits the text that is still held, because no further text follows. `message`: the agent's final message. */
  end(message?: Message): void {
    if (message !== undefined) this.#texts.compare(textOf(message.parts), this.#read);
    this.#texts.end(this.#read);
  }

  /**
   * Emits the request only once, although every poll returns it, because the agent may still receive the credentials out of band and
   * continue.
   */
  #authorize(message: Message | undefined): void {
    if (this.waiting !== undefined) return;
    this.#isWorking = false;
    this.#texts.settle(this.#read);
    const request = message ? shownMessage(message) : textMessage('The agent needs credentials.');
    this.waiting = { message: request, resume: { ...this.ids } };
    this.#read.push({ type: 'auth-required', ...this.waiting });
  }

  /**
   * Reads the agent's task as a whole: the result of a blocking send, or of a poll after a broken stream. The caller reads the status.
   * Returns whether the task contains all text and artifacts received so far; otherwise text may be missing.
   */
  snapshot(task: Task): boolean {
    this.remember(task.id, task.contextId);
    const messages = messagesOfTurn(task);
    const whole = !this.#hasText || this.#hasAll(messages);
    if (!this.#hasText) for (const message of messages) this.#working(message, undefined);
    else if (whole) this.#wholeText(messages);
    const artifactIds = new Set<string>();
    for (const { startGeneration: _start, endGeneration: _end, ...artifact } of task.artifacts ?? []) {
      artifactIds.add(keptId(artifact.artifactId));
      this.#artifactUpdate({ taskId: '', contextId: '', artifact, append: false, lastChunk: true });
    }
    const hasContent = this.#hasText || this.#artifacts.size > 0 || task.status.message !== undefined;
    return whole && hasContent && [...this.#artifacts].every(id => artifactIds.has(id));
  }

  #wholeText(messages: readonly Message[]): void {
    // Skipped for a message without an id, which may already have been read.
    if (this.#texts.deltas === undefined)
      for (const message of messages) if (message.messageId !== '') this.#working(message, undefined);
    if (this.#texts.deltas !== undefined) this.#read.push({ type: 'snapshot', text: this.#answerOf(messages) });
  }

  /** Whether the messages include the first piece of the answer. With cumulative texts, any text is enough. */
  #hasAll(messages: readonly Message[]): boolean {
    if ((this.#texts.deltas ?? 'incremental') !== 'incremental') return messages.some(message => textOf(message.parts) !== '');
    return this.#firstTextId !== undefined && messages.some(message => message.messageId === this.#firstTextId);
  }

  #answerOf(messages: readonly Message[]): string {
    const calls = new OpenCalls();
    const texts: string[] = [];
    for (const message of messages) {
      const notice = noticeOf(message, undefined, calls);
      if (notice !== undefined) calls.idOf(notice);
      else if (!isQueueNotice(message) && textOf(message.parts) !== '') texts.push(textOf(message.parts));
    }
    return this.#texts.wholeOf(texts);
  }

  /** Keeps the ids of the agent's task. The first ones are used; later different ids are ignored. */
  remember(taskId: string, contextId: string): void {
    if (taskId !== '') this.ids.taskId ??= taskId;
    if (contextId !== '') this.ids.contextId ??= contextId;
  }

  #task(task: Task): void {
    this.remember(task.id, task.contextId);
    // The first task marks the start of the work; a later one is a snapshot.
    if (!isInProgress(task.status.state) || this.#events > 1) this.snapshot(task);
    this.status(task.status, task.metadata);
  }

  #message(message: Message): void {
    this.ended = true;
    this.remember('', message.contextId ?? '');
    this.end(message);
    const direct = this.#events === 1 && { direct: true as const };
    this.#read.push({ type: 'done', message: shownMessage(message), ...direct });
  }

  #working(message: Message, metadata: Metadata | undefined): void {
    const { messageId, parts } = message;
    const { deltas = 'incremental', onSkipped } = this.#options;
    // An agent that is known to send cumulative text may use one id for all versions of its text.
    if (deltas === 'incremental' && messageId !== '' && !this.#recent.add(messageId)) {
      onSkipped('repeated message');
      return;
    }
    const notice = noticeOf(message, metadata, this.#calls);
    if (notice !== undefined) {
      this.#texts.settle(this.#read);
      this.#read.push(this.#tool(notice));
      return;
    }
    if (isQueueNotice(message)) {
      this.#read.push({ type: 'progress', message: shownMessage(message) });
      return;
    }
    const calls = parts.some(part => part.text === undefined) ? this.#others(message) : [];
    const text = textOf(parts);
    if (text !== '') this.#text(message, text);
    if (calls.length === 0) return;
    this.#texts.settle(this.#read);
    for (const call of calls) this.#read.push(this.#tool(call));
  }

  #text(message: Message, text: string): void {
    const { text: shown, onSkipped } = this.#options;
    const { messageId } = message;
    if (shown === 'hidden') onSkipped('hidden text');
    else if (shown === 'progress') this.#read.push({ type: 'progress', message: shownMessage(message) });
    else {
      if (!this.#hasText) this.#firstTextId = messageId || undefined;
      this.#hasText = true;
      this.#texts.take({ text, id: messageId }, this.#read);
    }
  }

  #tool(notice: ToolNotice): AgentEvent {
    const callId = this.#calls.idOf(notice);
    const { phase, tool, failed, waiting, arguments: args, result } = notice;
    const ended = phase === 'end' && { failed, ...(waiting && { waiting }), ...(result !== undefined && { result }) };
    return { type: 'tool', phase, callId, tool, ...(args !== undefined && { arguments: args }), ...ended };
  }

  /** Emits the files of a status, and returns the calls in its parts. */
  #others({ messageId, parts }: Message): ToolNotice[] {
    const files: Part[] = [];
    const calls: ToolNotice[] = [];
    for (const part of otherParts(parts)) {
      if (this.#shown.size < ARTIFACTS_MAX) this.#shown.add(keptId(JSON.stringify(part)));
      const call = noticeOfPart(part);
      if (call === undefined) files.push(part);
      else calls.push(call);
    }
    if (files.length === 0) return calls;
    this.#texts.settle(this.#read);
    const artifact = { artifactId: messageId || randomUUID(), parts: files };
    this.#read.push({ type: 'artifact', artifact, append: false, lastChunk: true });
    return calls;
  }

  /** The parts of an artifact that no status has shown. */
  #unshown(parts: Part[]): Part[] {
    return parts.filter(part => part.text !== undefined || !this.#shown.has(keptId(JSON.stringify(part))));
  }

  #artifactUpdate(update: TaskArtifactUpdateEvent): void {
    const { artifact, append = false, lastChunk = false } = update;
    this.remember(update.taskId, update.contextId);
    const empty = artifact.parts.every(part => part.text === '');
    if (artifact.name === END_MARKER && empty) {
      this.#options.onSkipped('empty marker');
      return;
    }
    const notice = noticeOfArtifact(artifact);
    if (notice !== undefined) {
      this.#texts.settle(this.#read);
      if (artifact.artifactId === '' || this.#recent.add(`artifact ${artifact.artifactId}`)) this.#read.push(this.#tool(notice));
      return;
    }
    const text = textOf(artifact.parts);
    if (lastChunk && !append) this.#texts.compare(text, this.#read);
    const artifactId = artifact.artifactId || artifact.name || 'artifact';
    this.#texts.artifact(keptId(artifactId), text, { append, last: lastChunk }, this.#read);
    if (this.#artifacts.size < ARTIFACTS_MAX) this.#artifacts.add(keptId(artifactId));
    // Google ADK sends the parts of its last status again as an artifact.
    const parts = this.#shown.size > 0 && lastChunk && !append ? this.#unshown(artifact.parts) : artifact.parts;
    if (parts.length < artifact.parts.length && parts.length === 0) return;
    const named = artifact.artifactId === artifactId && parts.length === artifact.parts.length;
    this.#read.push({ type: 'artifact', artifact: named ? artifact : { ...artifact, artifactId, parts }, append, lastChunk });
  }
}

function noticeOf(message: Message, metadata: Metadata | undefined, calls: OpenCalls): ToolNotice | undefined {
  const notice = noticeOfMetadata(message.metadata) ?? noticeOfMetadata(metadata);
  if (notice !== undefined || message.parts.length !== 1) return notice;
  return noticeOfText(message.parts[0]?.text ?? '', tool => calls.isOpen(tool));
}

/** The agent's messages after our newest one. The last one may be only in the status. */
function messagesOfTurn({ history = [], status }: Task): Message[] {
  const userIndex = history.findLastIndex(message => message.role === 'ROLE_USER');
  const messages = history.slice(userIndex + 1);
  const { message, state } = status;
  const working = isInProgress(state);
  if (working && message && !messages.some(one => one.messageId !== '' && one.messageId === message.messageId))
    messages.push(message);
  // The message that ends the turn is read from the status.
  return working || !message ? messages : messages.filter(one => one.messageId === '' || one.messageId !== message.messageId);
}

/** Numbers of tokens in the form in which a Hopline cluster below, and its agents, report them with the end of a turn. */
function usageOf(value: unknown): TokenUsage | undefined {
  if (!isObject(value)) return undefined;
  const known = TOKEN_COUNTS.filter(name => Number.isSafeInteger(value[name]) && Number(value[name]) >= 0);
  return known.length === 0 ? undefined : Object.fromEntries(known.map(name => [name, Number(value[name])]));
}

const OUTCOMES = {
  TASK_STATE_FAILED: 'the agent failed',
  TASK_STATE_CANCELED: 'the agent canceled its task',
  TASK_STATE_REJECTED: 'the agent rejected the message',
} as const;

function endEvent(state: TaskStatus['state'], message: Message | undefined, metadata: Metadata | undefined): AgentEvent {
  const ending = message && { message };
  if (state !== 'TASK_STATE_FAILED' && state !== 'TASK_STATE_CANCELED' && state !== 'TASK_STATE_REJECTED')
    return { type: 'done', ...ending };
  const retryable = metadata?.retryable === true || message?.metadata?.retryable === true;
  return { type: 'failed', reason: OUTCOMES[state], retryable, state, ...ending };
}
