import { isObject } from '@hopline/a2a';
import type { TokenUsage } from '@hopline/agent';
import { listOf, stringOf } from './json.ts';

/** `args`: undefined if the message has none, or if they cannot be written as JSON. */
type GraphToolCall = { id: string; name: string; args: unknown };

/** A LangChain message: an object of this process, or the JSON of a server. */
export type GraphMessage = {
  id: string | undefined;
  type: 'ai' | 'human' | 'tool' | 'other';
  /** A fragment of a message that is still being streamed. */
  isChunk: boolean;
  /** True for the last fragment, if the source marks it (Python does). */
  isLast: boolean;
  text: string;
  toolCalls: readonly GraphToolCall[];
  /** Present on a tool result. */
  toolCallId: string | undefined;
  toolFailed: boolean;
  /** Tokens that the model of the message reports. */
  usage: TokenUsage | undefined;
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
    usage: usageOf(value.usage_metadata),
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

function callOf(call: unknown): GraphToolCall[] {
  if (!isObject(call)) return [];
  const id = stringOf(call.id);
  const name = stringOf(call.name);
  return id === undefined || name === undefined ? [] : [{ id, name, args: isObject(call.args) ? call.args : undefined }];
}

/** LangChain's `usage_metadata`. */
function usageOf(value: unknown): TokenUsage | undefined {
  if (!isObject(value)) return undefined;
  const input = isObject(value.input_token_details) ? value.input_token_details : {};
  const output = isObject(value.output_token_details) ? value.output_token_details : {};
  const counts = {
    inputTokens: value.input_tokens,
    outputTokens: value.output_tokens,
    cachedTokens: input.cache_read,
    reasoningTokens: output.reasoning,
  };
  const known = Object.entries(counts).filter(([, count]) => Number.isSafeInteger(count) && Number(count) >= 0);
  return known.length === 0 ? undefined : (Object.fromEntries(known) as TokenUsage);
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
