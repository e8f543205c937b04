import { isObject } from '@hopline/a2a';
import { listOf, stringOf } from './json.ts';

/** A LangChain message: an object of this process, or the JSON of a server. */
export type GraphMessage = {
  id: string | undefined;
  type: 'ai' | 'human' | 'tool' | 'other';
  /** A fragment of a message that is still being streamed. */
  isChunk: boolean;
  /** True for the last fragment, if the source marks it (Python does). */
  isLast: boolean;
  text: string;
  toolCalls: readonly { id: string; name: string }[];
  /** Present on a tool result. */
  toolCallId: string | undefined;
  toolFailed: boolean;
};

const TYPES: Readonly<Record<string, GraphMessage['type']>> = {
  ai: 'ai',
  AIMessageChunk: 'ai',
  assistant: 'ai',
  human: 'human',
  HumanMessageChunk: 'human',
  user: 'human',
  tool: 'tool',
  ToolMessageChunk: 'tool',
};

/** Returns undefined when the value is not a message. */
export function readMessage(value: unknown): GraphMessage | undefined {
  if (!isObject(value) || !('content' in value)) return undefined;
  const type = stringOf(value.type) ?? typeName(value) ?? stringOf(value.role) ?? '';
  return {
    id: stringOf(value.id),
    type: TYPES[type] ?? 'other',
    // Chunks of this process have `concat`; those of a server have the type.
    isChunk: type.endsWith('Chunk') || typeof value.concat === 'function',
    isLast: value.chunk_position === 'last',
    text: contentText(value.content),
    toolCalls: listOf(value.tool_calls).flatMap(callOf),
    toolCallId: stringOf(value.tool_call_id),
    toolFailed: value.status === 'error',
  };
}

/** Reads a value of the state, which holds one message, a list of them, or none. */
export function readMessages(value: unknown): GraphMessage[] {
  return listOf(value).flatMap(entry => readMessage(entry) ?? []);
}

function typeName(value: Readonly<Record<string, unknown>>): string | undefined {
  const getType = value.getType ?? value._getType;
  return typeof getType === 'function' ? stringOf(getType.call(value)) : undefined;
}

function callOf(call: unknown): { id: string; name: string }[] {
  if (!isObject(call)) return [];
  const id = stringOf(call.id);
  const name = stringOf(call.name);
  return id === undefined || name === undefined ? [] : [{ id, name }];
}

/** Joins the text blocks in order. Reasoning, tool input and images are not text of the answer. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  let text = '';
  for (const block of listOf(content)) {
    if (typeof block === 'string') text += block;
    else if (isObject(block) && block.type === 'text' && typeof block.text === 'string') text += block.text;
  }
  return text;
}
