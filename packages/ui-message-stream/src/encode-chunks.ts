import { isInProgress, isInterrupted, type Part, stateWord, type TaskState } from '@hopline/a2a';
import { type ClientView, changesOf, type TextLabel, type ViewChange, type ViewFile, type ViewTool } from '@hopline/task-view';
import type { UiChunk } from './ui-chunk.ts';

/** Header by which clients recognize a UI message stream, and its value. */
export const UI_STREAM_HEADER = 'x-vercel-ai-ui-message-stream';
export const UI_STREAM_VERSION = 'v1';

/**
 * Encodes one turn of a task as one assistant message of the AI SDK: the changes of its view as chunks, in order. Only the answer becomes text,
 * so that a page that joins the text parts has the answer. A stream ends with `finish`, `error` or `abort`.
 */
export class ChunkEncoder {
  readonly #messageId: string;
  readonly #open = new Set<string>();
  /** Numbers the versions of a plan: each is a reasoning part of its own. */
  readonly #plans = new Map<string, number>();
  #hasStarted = false;
  #hasEnded = false;

  /** `messageId` must be the same for each stream of the turn, because a resumed stream replaces the message of this id. */
  constructor(messageId: string) {
    this.#messageId = messageId;
  }

  /** The turn has ended. No chunk follows. */
  get ended(): boolean {
    return this.#hasEnded;
  }

  /** Encodes the changes of a fold, whose view has all of them. The first chunks begin the message. */
  encode(changes: readonly ViewChange[], fold: { readonly view: ClientView }): UiChunk[] {
    // Most changes are one piece of text.
    if (this.#hasStarted && changes.length === 1 && changes[0]!.kind === 'text') return this.#encode(changes[0]!);
    const chunks: UiChunk[] = this.#hasStarted ? [] : [this.#start(fold.view)];
    const isTakenBack = changes.some(change => change.kind === 'text-restarted' && change.text.channel === 'answer');
    if (!isTakenBack) return [...chunks, ...changes.flatMap(change => this.#encode(change))];
    // Text that was streamed cannot be changed, only taken back with everything else.
    this.#open.clear();
    this.#plans.clear();
    return [...chunks, { type: 'reset-step' }, ...changesOf(fold.view).flatMap(change => this.#encode(change))];
  }

  #start({ taskId, contextId }: ClientView): UiChunk {
    this.#hasStarted = true;
    return { type: 'start', messageId: this.#messageId, messageMetadata: { hopline: { taskId, contextId } } };
  }

  #encode(change: ViewChange): UiChunk[] {
    if (this.#hasEnded) return [];
    switch (change.kind) {
      case 'text':
        return this.#delta(change.text, change.delta);
      case 'text-restarted':
        return this.#nextPlan(change.text, change.whole);
      case 'text-ended':
        return this.#end(change.text);
      case 'tool-started':
      case 'tool-arguments':
        return [inputOf(change.tool)];
      case 'tool-ended':
        return outputOf(change.tool);
      case 'file':
        return change.file.parts.map((part, index) => fileOf(change.file, part, index));
      case 'progress':
        return [{ type: 'data-progress', id: 'progress', data: { line: change.line, agent: change.agent }, transient: true }];
      case 'question': {
        const { kind, text } = change.question;
        const id = 'question';
        const providerMetadata = { hopline: { channel: 'question' } };
        const shown: UiChunk[] =
          text === ''
            ? []
            : [
                { type: 'text-start', id, providerMetadata },
                { type: 'text-delta', id, delta: text },
                { type: 'text-end', id },
              ];
        return [...shown, { type: 'data-question', id, data: { kind, text } }];
      }
      case 'usage':
        return [{ type: 'message-metadata', messageMetadata: { hopline: { usage: change.usage } } }];
      case 'state':
        return this.#state(change.state, change.reason);
      case 'task':
      case 'turn':
      case 'gap':
        return [];
    }
  }

  #delta(text: TextLabel, delta: string): UiChunk[] {
    const { id, type } = this.#partOf(text);
    if (this.#open.has(id)) return [{ type: `${type}-delta`, id, delta }];
    this.#open.add(id);
    const { agent } = text;
    const start: UiChunk = {
      type: `${type}-start`,
      id,
      ...(agent !== undefined && { providerMetadata: { hopline: { agent } } }),
    };
    return [start, { type: `${type}-delta`, id, delta }];
  }

  #end(text: TextLabel): UiChunk[] {
    const { id, type } = this.#partOf(text);
    return this.#open.delete(id) ? [{ type: `${type}-end`, id }] : [];
  }

  #nextPlan(text: TextLabel, whole: string): UiChunk[] {
    const ended = this.#end(text);
    this.#plans.set(text.id, (this.#plans.get(text.id) ?? 1) + 1);
    return whole === '' ? ended : [...ended, ...this.#delta(text, whole)];
  }

  #partOf({ id, channel }: TextLabel): { id: string; type: 'text' | 'reasoning' } {
    if (channel === 'answer') return { id, type: 'text' };
    const version = this.#plans.get(id) ?? 1;
    return { id: version === 1 ? id : `${id}.${version}`, type: 'reasoning' };
  }

  #state(state: TaskState, reason: string | undefined): UiChunk[] {
    const messageMetadata = { hopline: { state: stateWord(state) } };
    if (isInProgress(state)) return [{ type: 'message-metadata', messageMetadata }];
    this.#hasEnded = true;
    if (state === 'TASK_STATE_COMPLETED' || isInterrupted(state))
      return [{ type: 'finish', finishReason: 'stop', messageMetadata }];
    const shown: UiChunk = { type: 'message-metadata', messageMetadata };
    if (state === 'TASK_STATE_CANCELED') return [shown, { type: 'abort', ...(reason !== undefined && { reason }) }];
    return [shown, { type: 'error', errorText: reason ?? `the task is ${stateWord(state)}` }];
  }
}

/** The id of the assistant message that answers a message of the user: the same for each stream of the turn. */
export function answerIdOf(userMessageId: string): string {
  return `answer-${userMessageId}`;
}

/** The server runs all tools, so the page must not run them: `providerExecuted`. Their names are not known in advance: `dynamic`. */
const BY_SERVER = { providerExecuted: true, dynamic: true } as const;

function inputOf({ id, tool, agent, arguments: input = {} }: ViewTool): UiChunk {
  const call = { toolCallId: id, toolName: tool, input, ...BY_SERVER };
  return { type: 'tool-input-available', ...call, ...(agent !== undefined && { providerMetadata: { hopline: { agent } } }) };
}

/** A call that waits for the user, or whose end is unknown, stays without output. */
function outputOf({ id, outcome, result, notice }: ViewTool): UiChunk[] {
  if (outcome === 'completed')
    return [{ type: 'tool-output-available', toolCallId: id, output: result ?? notice.trim(), ...BY_SERVER }];
  if (outcome !== 'failed') return [];
  const errorText = typeof result === 'string' ? result : notice.trim();
  return [{ type: 'tool-output-error', toolCallId: id, errorText, ...BY_SERVER }];
}

function fileOf({ id, name, description, agent }: ViewFile, part: Part, index: number): UiChunk {
  const { text, raw, url, data, filename = name } = part;
  if (data !== undefined) return { type: 'data-artifact', id: `${id}.${index}`, data: { name, description, agent, data } };
  const mediaType = part.mediaType ?? (text === undefined ? 'application/octet-stream' : 'text/plain');
  const providerMetadata = { hopline: { filename, agent } };
  if (url !== undefined) return { type: 'file', url, mediaType, providerMetadata };
  // A lone surrogate cannot be percent-encoded.
  const content = raw === undefined ? `,${encodeURIComponent((text ?? '').toWellFormed())}` : `;base64,${raw}`;
  return {
    type: 'file',
    url: `data:${mediaType}${raw === undefined ? ';charset=utf-8' : ''}${content}`,
    mediaType,
    providerMetadata,
  };
}
