import { randomUUID } from 'node:crypto';
import {
  isInterrupted,
  isTerminal,
  type Message,
  type Metadata,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskStatus,
  textOf,
} from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import { otherParts, ownMessage, textMessage } from './message-parts.ts';
import { OpenCalls } from './open-calls.ts';
import type { Deltas, Skipped, StatusText } from './options.ts';
import { RecentIds } from './recent-ids.ts';
import { noticeOfArtifact, noticeOfMetadata, noticeOfText, type ToolNotice } from './tool-notice.ts';

/** Message ids that are remembered, to drop a repeated delivery. */
export const RECENT_MESSAGES_MAX = 4096;
/** Artifacts of one turn that are remembered, to tell whether a snapshot has them all. */
const ARTIFACTS_MAX = 1024;
/** S0-27: an agent's empty artifact of this name marks the end of its answer and is no content. */
const END_MARKER = 'current_result';

type Waiting = Omit<Extract<AgentEvent, { type: 'auth-required' }>, 'type'>;

export type ReaderOptions = { deltas: Deltas; text: StatusText; onSkipped: (what: Skipped) => void };

/** Turns what a foreign agent says in one turn into agent events. Knows the wire's meaning, not the wire. */
export class EventReader {
  /** Ids of the agent's own task: needed to cancel, recover and continue it, never shown. */
  ids: { taskId?: string; contextId?: string } = {};
  /** A terminal or interrupted event was yielded. */
  ended = false;
  /** What the agent waits for: credentials. */
  waiting: Waiting | undefined;
  readonly #options: ReaderOptions;
  readonly #recent = new RecentIds(RECENT_MESSAGES_MAX);
  readonly #calls = new OpenCalls();
  readonly #artifacts = new Set<string>();
  #events = 0;
  /** Id of the first status message that was part of the answer: a history that has it has all of them. */
  #firstTextId: string | undefined;
  #saidText = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** The agent has said something. */
  get begun(): boolean {
    return this.#events > 0;
  }

  *read(event: StreamResponse): Generator<AgentEvent> {
    this.#events += 1;
    if ('task' in event) yield* this.#task(event.task);
    else if ('message' in event) yield* this.#message(event.message);
    else if ('artifactUpdate' in event) yield* this.#artifactUpdate(event.artifactUpdate);
    else {
      const { taskId, contextId, status, metadata } = event.statusUpdate;
      this.remember(taskId, contextId);
      yield* this.status(status, metadata);
    }
  }

  *status(status: TaskStatus, metadata?: Metadata): Generator<AgentEvent> {
    const { state, message } = status;
    if (state === 'TASK_STATE_AUTH_REQUIRED') {
      yield* this.#authorize(message);
      return;
    }
    this.waiting = undefined;
    if (isInterrupted(state)) {
      this.ended = true;
      const asked = message ? ownMessage(message) : textMessage('The agent waits for an answer.');
      yield { type: 'interrupted', state, message: asked, resume: this.ids };
    } else if (isTerminal(state)) {
      this.ended = true;
      yield ending(state, message && ownMessage(message), metadata);
    } else if (message !== undefined) yield* this.#working(message, metadata);
  }

  /** Said once, however often the agent is asked: the credentials may reach it without us, and it goes on by itself. */
  *#authorize(message: Message | undefined): Generator<AgentEvent> {
    if (this.waiting !== undefined) return;
    const asked = message ? ownMessage(message) : textMessage('The agent needs credentials.');
    this.waiting = { message: asked, resume: { ...this.ids } };
    yield { type: 'auth-required', ...this.waiting };
  }

  /**
   * Reads the agent's task as a whole: the answer of a blocking send, or what is there after a stream broke. Its status is left to the caller.
   * Returns whether it has everything that was said; if not, text may be missing.
   */
  *snapshot(task: Task): Generator<AgentEvent, boolean> {
    this.remember(task.id, task.contextId);
    const said = saidInTurn(task);
    const whole = !this.#saidText || this.#hasAll(said);
    if (!this.#saidText) for (const message of said) yield* this.#working(message, undefined);
    else if (whole) yield { type: 'snapshot', text: this.#answerOf(said) };
    const found = new Set<string>();
    for (const artifact of task.artifacts ?? []) {
      found.add(artifact.artifactId);
      yield* this.#artifactUpdate({ taskId: '', contextId: '', artifact, append: false, lastChunk: true });
    }
    const something = this.#saidText || this.#artifacts.size > 0 || task.status.message !== undefined;
    return whole && something && [...this.#artifacts].every(id => found.has(id));
  }

  /** Whether a history goes back to the first piece of the answer, and so has the later ones too. Of a cumulative agent the newest is enough. */
  #hasAll(said: readonly Message[]): boolean {
    if (this.#options.deltas !== 'incremental') return said.some(message => textOf(message.parts) !== '');
    return this.#firstTextId !== undefined && said.some(message => message.messageId === this.#firstTextId);
  }

  #answerOf(said: readonly Message[]): string {
    const calls = new OpenCalls();
    const texts: string[] = [];
    for (const message of said) {
      const notice = noticeOf(message, undefined, calls);
      if (notice !== undefined) calls.idOf(notice);
      else if (textOf(message.parts) !== '') texts.push(textOf(message.parts));
    }
    return this.#options.deltas === 'incremental' ? texts.join('') : (texts.at(-1) ?? '');
  }

  /** Ids of the agent's task. The first ones count: an agent that sends other ids later changes nothing (S1-14). */
  remember(taskId: string, contextId: string): void {
    if (taskId !== '') this.ids.taskId ??= taskId;
    if (contextId !== '') this.ids.contextId ??= contextId;
  }

  *#task(task: Task): Generator<AgentEvent> {
    this.remember(task.id, task.contextId);
    const settled = isTerminal(task.status.state) || isInterrupted(task.status.state);
    // The first one only says that the task exists; a later one is a snapshot.
    if (settled || this.#events > 1) yield* this.snapshot(task);
    yield* this.status(task.status, task.metadata);
  }

  *#message(message: Message): Generator<AgentEvent> {
    this.ended = true;
    this.remember('', message.contextId ?? '');
    const direct = this.#events === 1 && { direct: true as const };
    yield { type: 'done', message: ownMessage(message), ...direct };
  }

  *#working(message: Message, metadata: Metadata | undefined): Generator<AgentEvent> {
    const { messageId, parts } = message;
    const { deltas, text: shown, onSkipped } = this.#options;
    // A cumulative agent may well use one id for all its versions.
    if (deltas === 'incremental' && messageId !== '' && !this.#recent.add(messageId)) return onSkipped('repeated message');
    const notice = noticeOf(message, metadata, this.#calls);
    if (notice !== undefined) return yield this.#tool(notice);
    yield* this.#files(message);
    const text = textOf(parts);
    if (text === '') return;
    if (shown === 'hidden') return onSkipped('hidden text');
    if (shown === 'progress') return yield { type: 'progress', message: ownMessage(message) };
    if (!this.#saidText) this.#firstTextId = messageId || undefined;
    this.#saidText = true;
    if (deltas !== 'incremental') yield { type: 'snapshot', text };
    else yield { type: 'text', text, ...(messageId !== '' && { id: messageId }) };
  }

  #tool(notice: ToolNotice): AgentEvent {
    const callId = this.#calls.idOf(notice);
    const ended = notice.phase === 'end' && { failed: notice.failed };
    return { type: 'tool', phase: notice.phase, callId, tool: notice.tool, ...ended };
  }

  /** Parts of a status that are no text (S2-28). */
  *#files(message: Message): Generator<AgentEvent> {
    const parts = otherParts(message.parts);
    if (parts.length === 0) return;
    yield {
      type: 'artifact',
      artifact: { artifactId: message.messageId || randomUUID(), parts },
      append: false,
      lastChunk: true,
    };
  }

  *#artifactUpdate(update: TaskArtifactUpdateEvent): Generator<AgentEvent> {
    const { artifact, append = false, lastChunk = false } = update;
    this.remember(update.taskId, update.contextId);
    const empty = artifact.parts.every(part => part.text === '');
    if (artifact.name === END_MARKER && empty) return this.#options.onSkipped('empty marker');
    const notice = noticeOfArtifact(artifact);
    if (notice !== undefined) {
      if (artifact.artifactId === '' || this.#recent.add(`artifact ${artifact.artifactId}`)) yield this.#tool(notice);
      return;
    }
    const artifactId = artifact.artifactId || artifact.name || 'artifact';
    if (this.#artifacts.size < ARTIFACTS_MAX) this.#artifacts.add(artifactId);
    yield { type: 'artifact', artifact: { ...artifact, artifactId }, append, lastChunk };
  }
}

function noticeOf(message: Message, metadata: Metadata | undefined, calls: OpenCalls): ToolNotice | undefined {
  const told = noticeOfMetadata(message.metadata) ?? noticeOfMetadata(metadata);
  if (told !== undefined || message.parts.length !== 1) return told;
  return noticeOfText(message.parts[0]?.text ?? '', tool => calls.isOpen(tool));
}

/** The agent's messages of this turn: those after the newest one of ours. The newest may stand in the status alone. */
function saidInTurn({ history = [], status }: Task): Message[] {
  const ours = history.findLastIndex(message => message.role === 'ROLE_USER');
  const said = history.slice(ours + 1);
  const { message, state } = status;
  const working = !isTerminal(state) && !isInterrupted(state);
  if (working && message && !said.some(one => one.messageId !== '' && one.messageId === message.messageId)) said.push(message);
  // What ends the turn is told by the status itself.
  return working || !message ? said : said.filter(one => one.messageId === '' || one.messageId !== message.messageId);
}

const OUTCOMES = {
  TASK_STATE_FAILED: 'the agent failed',
  TASK_STATE_CANCELED: 'the agent canceled its task',
  TASK_STATE_REJECTED: 'the agent rejected the message',
} as const;

function ending(state: TaskStatus['state'], message: Message | undefined, metadata: Metadata | undefined): AgentEvent {
  const said = message && { message };
  if (state !== 'TASK_STATE_FAILED' && state !== 'TASK_STATE_CANCELED' && state !== 'TASK_STATE_REJECTED')
    return { type: 'done', ...said };
  const retryable = metadata?.retryable === true || message?.metadata?.retryable === true;
  return { type: 'failed', reason: OUTCOMES[state], retryable, state, ...said };
}
