import { randomUUID } from 'node:crypto';
import type { Message, Metadata, Part } from '@hopline/a2a';
import type { ModelError } from '@hopline/chat-model';
import type { AgentEvent } from './agent.ts';
import { AgentMisuse, kindOf } from './misuse.ts';

/** Events that a defined agent may yield in addition to strings. Authors write no message ids or states. All constructors throw AgentMisuse. */

export type ArtifactSpec = {
  /** Clients see it. It also pairs the chunks of one artifact within the turn, unless `id` is given. */
  name: string;
  id?: string | undefined;
  description?: string | undefined;
  /** Exactly one of text and parts. */
  text?: string | undefined;
  parts?: Part[] | undefined;
  metadata?: Metadata | undefined;
  /** True appends to the artifact of this name; false, the default, begins or replaces it. */
  append?: boolean | undefined;
  /** No later chunk follows. Default true. */
  last?: boolean | undefined;
};

/** A line about progress: seen by the client, never part of the answer. */
export function notice(line: string): AgentEvent {
  return { type: 'progress', message: messageOf(nonEmpty('notice', line)) };
}

/** An artifact in addition to the answer, e.g. a file or a report, whole or in chunks (`append`, `last`). */
export function artifact(spec: ArtifactSpec): AgentEvent {
  const { name, id = name, description, text, parts, metadata, append = false, last = true } = spec ?? {};
  nonEmpty('artifact: name', name);
  if ((text === undefined) === (parts === undefined)) throw new AgentMisuse('artifact: give exactly one of text and parts');
  if (text !== undefined && typeof text !== 'string') throw new AgentMisuse(`artifact: text is ${kindOf(text)}, not a string`);
  if (parts !== undefined && !Array.isArray(parts)) throw new AgentMisuse(`artifact: parts is ${kindOf(parts)}, not an array`);
  const shown = { artifactId: id, name, ...(description !== undefined && { description }), ...(metadata && { metadata }) };
  return {
    type: 'artifact',
    artifact: { ...shown, parts: parts ?? [{ text: text ?? '' }] },
    append,
    lastChunk: last,
    apart: true,
  };
}

/** One JSON value as an artifact. */
export function data(
  value: unknown,
  { name = 'data', description }: { name?: string | undefined; description?: string | undefined } = {},
): AgentEvent {
  if (!isJson(value)) throw new AgentMisuse(`data: ${kindOf(value)} cannot be written as JSON`);
  return artifact({ name, parts: [{ data: value }], ...(description !== undefined && { description }) });
}

/** Ends the turn; the task waits for the user. `resume`, any JSON value, comes back as `turn.resume` with the answer. */
export function needsInput(question: string, { resume }: { resume?: unknown } = {}): AgentEvent {
  if (resume !== undefined && !isJson(resume)) throw new AgentMisuse('needsInput: resume cannot be written as JSON');
  const message = messageOf(nonEmpty('needsInput', question));
  return { type: 'interrupted', state: 'TASK_STATE_INPUT_REQUIRED', message, ...(resume !== undefined && { resume }) };
}

/** Ends the turn, like the end of `run`. */
export function done(): AgentEvent {
  return { type: 'done' };
}

/** Fails the turn. Clients see `reason`, which must not contain secrets or the user's text. */
export function failed(reason: string, { retryable = false }: { retryable?: boolean | undefined } = {}): AgentEvent {
  return { type: 'failed', reason: nonEmpty('failed', reason), retryable };
}

/** Fails the turn because its model has failed. */
export function modelFailed({ message, retryable, code }: ModelError): AgentEvent {
  return { type: 'failed', reason: message, retryable, cause: code };
}

function messageOf(text: string): Message {
  return { messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text }] };
}

export function nonEmpty(member: string, text: unknown): string {
  if (typeof text !== 'string') throw new AgentMisuse(`${member} is ${kindOf(text)}, not a string`);
  if (text === '') throw new AgentMisuse(`${member} is empty`);
  return text;
}

export function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}
