import { randomUUID } from 'node:crypto';
import { isObject, type Message, type Metadata, type Part } from '@hopline/a2a';
import type { ModelError } from '@hopline/chat-model';
import type { AgentEvent } from './agent.ts';
import { askApproval } from './approval.ts';
import { AgentMisuse, kindOf } from './misuse.ts';
import { faultOfParts } from './parts.ts';

/**
 * Events that a defined agent may yield in addition to strings. Authors do not write message ids or states. All constructors throw
 * AgentMisuse.
 */

export type ArtifactSpec = {
  /** Clients see it. It also pairs the chunks of one artifact within the turn, unless `id` is given. */
  name: string;
  id?: string | undefined;
  description?: string | undefined;
  /** Exactly one of text, bytes and parts. */
  text?: string | undefined;
  /** The bytes of a file that has the artifact's name. */
  bytes?: Uint8Array | undefined;
  /** The media type of `bytes`, e.g. `image/png`. */
  mediaType?: string | undefined;
  /** Parts of A2A 1.0. A file is `{ raw, filename, mediaType }`, with `raw` in base64. */
  parts?: Part[] | undefined;
  metadata?: Metadata | undefined;
  /**
   * True appends to the artifact of this name; false, the default, replaces its content. An artifact that has ended stays as it is, and the
   * event begins another one.
   */
  append?: boolean | undefined;
  /** The artifact ends with this chunk. Default true. */
  last?: boolean | undefined;
};

/** A line about progress: seen by the client, never part of the answer. */
export function notice(line: string): AgentEvent {
  return { type: 'progress', message: messageOf(nonEmpty('notice', line)) };
}

/** An artifact in addition to the answer, e.g. a file or a report, whole or in chunks (`append`, `last`). */
export function artifact(spec: ArtifactSpec): AgentEvent {
  const { name, id = name, description, text, bytes, mediaType, parts, metadata, append = false, last = true } = spec ?? {};
  nonEmpty('artifact: name', name);
  if ([text, bytes, parts].filter(content => content !== undefined).length !== 1)
    throw new AgentMisuse('artifact: give exactly one of text, bytes and parts');
  if (text !== undefined && typeof text !== 'string') throw new AgentMisuse(`artifact: text is ${kindOf(text)}, not a string`);
  if (bytes !== undefined && !(bytes instanceof Uint8Array))
    throw new AgentMisuse(`artifact: bytes is ${kindOf(bytes)}, not a Uint8Array`);
  if (mediaType !== undefined && bytes === undefined)
    throw new AgentMisuse('artifact: mediaType applies only to bytes; set it in the parts');
  const content = parts ?? [bytes === undefined ? { text: text ?? '' } : fileOf({ name, bytes, mediaType })];
  const fault = faultOfParts(content) ?? faultOfData(content);
  if (fault !== undefined) throw new AgentMisuse(`artifact: ${fault}`);
  const shown = { artifactId: id, name, ...(description !== undefined && { description }), ...(metadata && { metadata }) };
  return {
    type: 'artifact',
    artifact: { ...shown, parts: content },
    append,
    lastChunk: last,
    apart: true,
  };
}

function fileOf({ name, bytes, mediaType }: { name: string; bytes: Uint8Array; mediaType: string | undefined }): Part {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return { raw, filename: name, ...(mediaType !== undefined && { mediaType }) };
}

function faultOfData(parts: readonly Part[]): string | undefined {
  const index = parts.findIndex(({ data }) => data !== undefined && !isJson(data));
  return index < 0 ? undefined : `parts[${index}].data cannot be written as JSON`;
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

/** The call that `needsApproval` asks about. */
export type ApprovalSpec = {
  /** Name of the tool, as people see it. */
  tool: string;
  /** The arguments, a JSON object. They come back as `turn.approval.arguments`, and no answer can change them. */
  arguments: Readonly<Record<string, unknown>>;
  /** Default: a question that names the tool and all arguments. */
  question?: string | undefined;
  /** Any JSON value; the turn of the answer gets it back as `turn.resume`. */
  resume?: unknown;
};

/** Ends the turn; the task waits until the user approves or refuses a call. The next turn has the decision as `turn.approval`. */
export function needsApproval(spec: ApprovalSpec): AgentEvent {
  const { tool, arguments: args, question, resume } = spec ?? {};
  nonEmpty('needsApproval: tool', tool);
  if (!isObject(args) || !isJson(args))
    throw new AgentMisuse(`needsApproval: arguments is ${kindOf(args)}; it must be an object that can be written as JSON`);
  if (question !== undefined) nonEmpty('needsApproval: question', question);
  if (resume !== undefined && !isJson(resume)) throw new AgentMisuse('needsApproval: resume cannot be written as JSON');
  return askApproval({ callId: randomUUID(), tool, arguments: args }, { question, resume });
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
