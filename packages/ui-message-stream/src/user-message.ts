import { approvalResponsePart, isObject, type JsonObject, type Part } from '@hopline/a2a';
import { answerIdOf, type ShownApproval } from './encode-chunks.ts';
import type { ShownTurn } from './turn-encoder.ts';

/** A request of the AI SDK for an answer, in terms of A2A. */
export type UiChatRequest = {
  contextId: string;
  /** Message id of the user's message in A2A. */
  messageId: string;
  parts: Part[];
  /** The task whose question the message answers. */
  taskId: string | undefined;
  /** The turn of the answer, as the stream shows it. */
  turn: ShownTurn;
};

/** The messages of a chat that cannot be sent. The message is the end of a sentence that begins with the wrong member. */
export class ChatMessageError extends Error {
  override readonly name = 'ChatMessageError';
}

/**
 * The last message of a chat, to be sent to an agent. Agents receive the earlier messages from the log, so those of the request are read
 * only for the question that the message answers. `messageId`: the id of a message that the user has edited. `newId`: the id for such a
 * message, which keeps its old id in the page, and for a message that is sent again to regenerate its answer.
 */
export function uiChatRequestOf(
  { chatId, messages, trigger, messageId }: { chatId: unknown; messages: unknown; trigger: unknown; messageId?: unknown },
  newId: () => string,
): UiChatRequest {
  if (typeof chatId !== 'string' || chatId === '') throw new ChatMessageError('id must be the id of the chat, a string');
  if (!Array.isArray(messages)) throw new ChatMessageError('messages must be an array');
  if (trigger !== undefined && trigger !== 'submit-message' && trigger !== 'regenerate-message')
    throw new ChatMessageError('trigger must be submit-message or regenerate-message');
  const approval = trigger === 'regenerate-message' ? undefined : approvalRequest(messages, messageId);
  if (approval !== undefined) return { contextId: chatId, ...approval };
  const index = messages.length - 1;
  const last: unknown = messages[index];
  if (!isObject(last) || last.role !== 'user')
    throw new ChatMessageError(
      `messages[${Math.max(0, index)}] must be a message of the user, or have a part in the state approval-responded`,
    );
  if (typeof last.id !== 'string' || last.id === '') throw new ChatMessageError(`messages[${index}].id must be a string`);
  const isAgain = trigger === 'regenerate-message' || messageId === last.id;
  const parts = partsOf(last.parts, `messages[${index}].parts`);
  const taskId = isAgain ? undefined : askingTask(messages[index - 1]);
  const id = isAgain ? newId() : last.id;
  return {
    ...{ contextId: chatId, messageId: id, parts, taskId },
    turn: { messageId: answerIdOf(id), continues: taskId !== undefined },
  };
}

/**
 * The decisions about calls of an assistant message: the one that `messageId` names or, without it, the last one. The A2A message has the
 * same id in every tab, so that only one decision counts. The answer continues the assistant message.
 */
function approvalRequest(messages: readonly unknown[], messageId: unknown): Omit<UiChatRequest, 'contextId'> | undefined {
  const named = messages.find(message => isObject(message) && message.id === messageId && message.role === 'assistant');
  const message = named ?? messages.at(-1);
  if (!isObject(message) || message.role !== 'assistant' || typeof message.id !== 'string') return undefined;
  const approvals = (Array.isArray(message.parts) ? message.parts : []).flatMap(respondedApproval);
  const [last] = approvals.slice(-1);
  if (last === undefined) return undefined;
  const { taskId } = hoplineOf(message);
  if (typeof taskId !== 'string')
    throw new ChatMessageError('messages must keep the metadata of the assistant message whose call was approved or denied');
  return {
    ...{ messageId: `approval-${last.callId}`, parts: approvals.map(approvalResponsePart), taskId },
    turn: { messageId: message.id, continues: true, approvals: [last] },
  };
}

/** The decision in a part whose call has not run. */
function respondedApproval(part: unknown): ShownApproval[] {
  if (!isObject(part) || part.state !== 'approval-responded' || !isObject(part.approval)) return [];
  const { id, approved, reason } = part.approval;
  if (typeof id !== 'string' || typeof approved !== 'boolean' || typeof part.toolCallId !== 'string') return [];
  const given = typeof reason === 'string' && reason !== '' && { reason };
  return [{ callId: id, approved, ...given, toolCallId: part.toolCallId }];
}

/** Metadata of an assistant message, from its stream. */
function hoplineOf({ metadata }: JsonObject): JsonObject {
  return isObject(metadata) && isObject(metadata.hopline) ? metadata.hopline : {};
}

/** The task of an assistant message that ended with a question, from the metadata of its stream. */
function askingTask(message: unknown): string | undefined {
  const { state, taskId } = isObject(message) && message.role === 'assistant' ? hoplineOf(message) : {};
  return (state === 'input-required' || state === 'auth-required') && typeof taskId === 'string' ? taskId : undefined;
}

function partsOf(parts: unknown, path: string): Part[] {
  if (!Array.isArray(parts)) throw new ChatMessageError(`${path} must be an array`);
  const sent = parts.flatMap((part: unknown, index) => partOf(part, `${path}[${index}]`));
  if (sent.length === 0) throw new ChatMessageError(`${path} must have a text, a file or data`);
  return sent;
}

function partOf(part: unknown, path: string): Part[] {
  if (!isObject(part) || typeof part.type !== 'string') throw new ChatMessageError(`${path} must be a part with a type`);
  if (part.type === 'text') {
    if (typeof part.text !== 'string') throw new ChatMessageError(`${path}.text must be a string`);
    return part.text === '' ? [] : [{ text: part.text }];
  }
  if (part.type === 'file') return [filePart(part, path)];
  if (part.type.startsWith('data-')) return [{ data: part.data, metadata: { type: part.type } }];
  // Parts that only the page uses, such as the beginning of a step.
  return [];
}

const DATA_URL = /^data:([^,;]*)(?:;[^,;]*)*?(;base64)?,/i;

function filePart({ url, mediaType, filename }: JsonObject, path: string): Part {
  if (typeof url !== 'string') throw new ChatMessageError(`${path}.url must be a string`);
  const known = {
    ...(typeof filename === 'string' && filename !== '' && { filename }),
    ...(typeof mediaType === 'string' && mediaType !== '' && { mediaType }),
  };
  const head = DATA_URL.exec(url);
  if (head === null) {
    if (!/^https?:\/\//i.test(url)) throw new ChatMessageError(`${path}.url must be a data URL, or one of http or https`);
    return { url, ...known };
  }
  const content = url.slice(head[0].length);
  const typed = { ...(head[1] !== '' && { mediaType: head[1]! }), ...known };
  if (head[2] !== undefined) return { raw: content, ...typed };
  try {
    return { raw: base64Of(decodeURIComponent(content)), ...typed };
  } catch {
    throw new ChatMessageError(`${path}.url must be a valid data URL`);
  }
}

function base64Of(text: string): string {
  let bytes = '';
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}
