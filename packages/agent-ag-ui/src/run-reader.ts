import { randomUUID } from 'node:crypto';
import { isObject, type JsonObject, type Message, type Part } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import jsonPatch, { type Operation } from 'fast-json-patch';
import { RunFault } from './run-fault.ts';
import { keptResume, type ThreadResume } from './run-input.ts';

type OpenCall = { callId: string; tool: string; args: string };

/**
 * Reads the events of a run as those of a turn. Texts are the answer, one stream for each message; reasoning and activities are left out. Events of
 * unknown types are skipped, as AG-UI asks for.
 */
export class RunReader {
  readonly #userMessageId: string;
  /** Texts that were streamed, by the ids of their messages. */
  readonly #sent = new Map<string, string>();
  /** Texts of the answer according to the newest snapshot and the events after it. */
  readonly #texts = new Map<string, string>();
  readonly #open = new Set<string>();
  readonly #calls = new Map<string, OpenCall>();
  /** Calls whose start was shown. */
  readonly #shown = new Map<string, string>();
  #state: JsonObject;
  #chunk: { kind: 'text' | 'tool' | 'other'; id: string } | undefined;
  #hasEnded = false;

  constructor(userMessageId: string, state: JsonObject = {}) {
    this.#userMessageId = userMessageId;
    this.#state = state;
  }

  get ended(): boolean {
    return this.#hasEnded;
  }

  read(event: JsonObject): AgentEvent[] {
    if (this.#hasEnded) return [];
    const { type } = event;
    const isChunk = type === 'TEXT_MESSAGE_CHUNK' || type === 'TOOL_CALL_CHUNK';
    const closed = isChunk ? [] : this.#closeChunk();
    return [...closed, ...this.#read(event)];
  }

  #read(event: JsonObject): AgentEvent[] {
    const { type, messageId, toolCallId, delta } = event;
    switch (type) {
      case 'TEXT_MESSAGE_START':
        if (isAnswer(event) && typeof messageId === 'string') this.#begin(messageId);
        return [];
      case 'TEXT_MESSAGE_CONTENT':
        return typeof messageId === 'string' && this.#open.has(messageId) ? this.#text(messageId, delta) : [];
      case 'TEXT_MESSAGE_END':
        return typeof messageId === 'string' ? this.#endText(messageId) : [];
      case 'TEXT_MESSAGE_CHUNK':
        return this.#textChunk(event);
      case 'TOOL_CALL_START':
        if (typeof toolCallId === 'string') this.#beginCall(toolCallId, event.toolCallName);
        return [];
      case 'TOOL_CALL_ARGS':
        this.#addArgs(toolCallId, delta);
        return [];
      case 'TOOL_CALL_END':
        return this.#showCall(toolCallId);
      case 'TOOL_CALL_CHUNK':
        return this.#toolChunk(event);
      case 'TOOL_CALL_RESULT':
        return this.#result(toolCallId, event);
      case 'STEP_STARTED':
        return typeof event.stepName === 'string' ? [{ type: 'step', step: event.stepName }] : [];
      case 'STATE_SNAPSHOT':
        if (isObject(event.snapshot)) this.#state = event.snapshot;
        return [];
      case 'STATE_DELTA':
        this.#patch(delta);
        return [];
      case 'MESSAGES_SNAPSHOT':
        this.#snapshot(event.messages);
        return [];
      case 'CUSTOM':
        return event.name === 'hopline.file' ? fileOf(event.value) : [];
      case 'RUN_FINISHED':
        return [...usageOf(event.usage), ...this.#finished(event.outcome)];
      case 'RUN_ERROR':
        return [...usageOf(event.usage), this.#end(failed(event.message))];
      default:
        return [];
    }
  }

  #begin(messageId: string): void {
    this.#open.add(messageId);
    if (!this.#texts.has(messageId)) this.#texts.set(messageId, '');
  }

  #text(messageId: string, delta: unknown): AgentEvent[] {
    if (typeof delta !== 'string' || delta === '') return [];
    this.#sent.set(messageId, (this.#sent.get(messageId) ?? '') + delta);
    this.#texts.set(messageId, (this.#texts.get(messageId) ?? '') + delta);
    return [{ type: 'text', text: delta, stream: messageId }];
  }

  #endText(messageId: string): AgentEvent[] {
    return this.#open.delete(messageId) && this.#sent.has(messageId) ? [{ type: 'text-end', stream: messageId }] : [];
  }

  /** A chunk without an id continues the message of the previous chunk; a chunk of another message ends it. */
  #textChunk({ messageId, role, delta }: JsonObject): AgentEvent[] {
    const id = typeof messageId === 'string' ? messageId : this.#chunk?.id;
    if (id === undefined) return [];
    const isSame = this.#chunk?.id === id && this.#chunk.kind !== 'tool';
    const closed = isSame ? [] : this.#closeChunk();
    if (!isSame) {
      this.#chunk = { kind: isAnswer({ role }) ? 'text' : 'other', id };
      if (this.#chunk.kind === 'text') this.#begin(id);
    }
    return this.#chunk?.kind === 'text' ? [...closed, ...this.#text(id, delta)] : closed;
  }

  #toolChunk({ toolCallId, toolCallName, delta }: JsonObject): AgentEvent[] {
    const id = typeof toolCallId === 'string' ? toolCallId : this.#chunk?.id;
    if (id === undefined) return [];
    const isSame = this.#chunk?.id === id && this.#chunk.kind === 'tool';
    const closed = isSame ? [] : this.#closeChunk();
    if (!isSame) {
      this.#chunk = { kind: 'tool', id };
      this.#beginCall(id, toolCallName);
    }
    this.#addArgs(id, delta);
    return closed;
  }

  #closeChunk(): AgentEvent[] {
    const chunk = this.#chunk;
    this.#chunk = undefined;
    if (chunk?.kind === 'text') return this.#endText(chunk.id);
    return chunk?.kind === 'tool' ? this.#showCall(chunk.id) : [];
  }

  #beginCall(callId: string, name: unknown): void {
    this.#calls.set(callId, { callId, tool: typeof name === 'string' && name !== '' ? name : 'tool', args: '' });
  }

  #addArgs(callId: unknown, delta: unknown): void {
    const call = this.#calls.get(String(callId));
    if (call !== undefined && typeof delta === 'string') call.args += delta;
  }

  /** Shows a call when its arguments are whole. */
  #showCall(callId: unknown): AgentEvent[] {
    const call = this.#calls.get(String(callId));
    if (call === undefined) return [];
    this.#calls.delete(call.callId);
    this.#shown.set(call.callId, call.tool);
    const given = call.args === '' ? {} : { arguments: jsonOr(call.args) };
    return [{ type: 'tool', phase: 'start', callId: call.callId, tool: call.tool, ...given }];
  }

  #result(callId: unknown, { content, error }: JsonObject): AgentEvent[] {
    const started = this.#showCall(callId);
    const tool = this.#shown.get(String(callId));
    if (tool === undefined) return started;
    this.#shown.delete(String(callId));
    const isFailed = typeof error === 'string' && error !== '';
    const result = isFailed ? error : typeof content === 'string' ? jsonOr(content) : content;
    const failure = isFailed ? { failed: true } : {};
    return [...started, { type: 'tool', phase: 'end', callId: String(callId), tool, ...failure, result }];
  }

  #patch(delta: unknown): void {
    if (!Array.isArray(delta)) return;
    try {
      const { newDocument } = jsonPatch.applyPatch(this.#state, delta as Operation[], true, false);
      if (isObject(newDocument)) this.#state = newDocument;
    } catch (cause) {
      throw new RunFault('the AG-UI server sent a change that its state does not allow', false, { cause });
    }
  }

  /** The answer consists of the messages after the user's message. */
  #snapshot(messages: unknown): void {
    if (!Array.isArray(messages)) return;
    const asked = messages.findLastIndex(
      (one: unknown) => isObject(one) && (one.id === this.#userMessageId || one.role === 'user'),
    );
    this.#texts.clear();
    for (const one of messages.slice(asked + 1) as unknown[]) {
      if (!isObject(one) || one.role !== 'assistant' || typeof one.id !== 'string') continue;
      if (typeof one.content === 'string') this.#texts.set(one.id, one.content);
    }
  }

  #finished(outcome: unknown): AgentEvent[] {
    const { type, interrupts } = isObject(outcome) ? outcome : {};
    if (type === 'cancelled')
      return [
        this.#end({ type: 'failed', reason: 'the agent canceled the run', retryable: false, state: 'TASK_STATE_CANCELED' }),
      ];
    if (type === 'interrupt') return [...this.#done(), this.#question(interrupts)].filter(({ type: kind }) => kind !== 'done');
    return this.#done();
  }

  #done(): AgentEvent[] {
    const written = [...this.#texts].filter(([, text]) => text !== '');
    const isAsSent = written.every(([id, text]) => this.#sent.get(id) === text) && written.length === this.#sent.size;
    const resume = this.#resume({});
    if (isAsSent) return [this.#end({ type: 'done', resume })];
    const message = agentMessage(written.map(([, text]) => text).join(''));
    return [this.#end({ type: 'done', message, ...(this.#sent.size > 0 && { standing: 'replaces' as const }), resume })];
  }

  #question(interrupts: unknown): AgentEvent {
    const asked: unknown[] = Array.isArray(interrupts) ? interrupts : [];
    const [first] = asked;
    if (asked.length > 1)
      return this.#end({
        type: 'failed',
        reason: 'the agent asked several questions at once; a task can ask only one',
        retryable: false,
      });
    if (!isObject(first) || typeof first.id !== 'string')
      return this.#end({ type: 'failed', reason: 'the agent interrupted its run without a question', retryable: false });
    const { message, reason } = first;
    const text = typeof message === 'string' && message !== '' ? message : typeof reason === 'string' ? reason : '';
    const state = reason === 'auth_required' ? 'TASK_STATE_AUTH_REQUIRED' : 'TASK_STATE_INPUT_REQUIRED';
    return this.#end({
      ...{ type: 'interrupted', state, message: agentMessage(text) },
      resume: this.#resume({ interruptId: first.id }),
    });
  }

  #resume(more: ThreadResume): ThreadResume {
    return keptResume({ state: this.#state, ...more });
  }

  #end(event: AgentEvent): AgentEvent {
    this.#hasEnded = true;
    return event;
  }
}

const isAnswer = ({ role }: JsonObject) => role === undefined || role === 'assistant';

function failed(text: unknown): AgentEvent {
  const message = typeof text === 'string' && text !== '' ? { message: agentMessage(text) } : {};
  return { type: 'failed', reason: 'the agent reported an error', retryable: false, cause: 'run_error', ...message };
}

function agentMessage(text: string): Message {
  return { messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text }] };
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A file of an agent behind another Hopline. */
function fileOf(value: unknown): AgentEvent[] {
  if (!isObject(value) || !Array.isArray(value.parts)) return [];
  const { name, description } = value;
  const parts = value.parts.filter(isObject) as Part[];
  const named = { ...(typeof name === 'string' && { name }), ...(typeof description === 'string' && { description }) };
  const artifact = { artifactId: randomUUID(), ...named, parts };
  return [{ type: 'artifact', artifact, append: false, lastChunk: true }];
}

const TOKENS = {
  inputTokens: 'inputTokens',
  outputTokens: 'outputTokens',
  cachedInputTokens: 'cachedTokens',
  reasoningTokens: 'reasoningTokens',
} as const;

function usageOf(entries: unknown): AgentEvent[] {
  if (!Array.isArray(entries)) return [];
  const usage: Partial<Record<(typeof TOKENS)[keyof typeof TOKENS], number>> = {};
  for (const entry of entries.filter(isObject)) {
    for (const [theirs, ours] of Object.entries(TOKENS)) {
      const count = entry[theirs];
      if (typeof count === 'number' && Number.isSafeInteger(count) && count >= 0) usage[ours] = (usage[ours] ?? 0) + count;
    }
  }
  return Object.keys(usage).length === 0 ? [] : [{ type: 'usage', usage }];
}
