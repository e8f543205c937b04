import type {
  LanguageModelV4FilePart,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
} from '@ai-sdk/provider';
import type { ChatFile, ChatMessage, ChatTool } from './chat.ts';

/** Converts messages to the library's types. */
export function promptOf(messages: readonly ChatMessage[]): LanguageModelV4Prompt {
  return messages.map(promptMessage);
}

function promptMessage(message: ChatMessage): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.text };
    case 'user':
      return { role: 'user', content: [{ type: 'text', text: message.text }, ...(message.files ?? []).map(filePart)] };
    case 'assistant': {
      const text = message.text === '' ? [] : [{ type: 'text' as const, text: message.text }];
      const calls = message.calls.map(({ id, name, args }) => {
        return { type: 'tool-call' as const, toolCallId: id, toolName: name, input: args };
      });
      return { role: 'assistant', content: [...text, ...calls] };
    }
    case 'tool': {
      const { id: toolCallId, name: toolName } = message.call;
      const output = { type: 'text' as const, value: message.text };
      return { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] };
    }
  }
}

function filePart({ mediaType, filename, ...file }: ChatFile): LanguageModelV4FilePart {
  const named = { type: 'file', mediaType, ...(filename !== undefined && { filename }) } as const;
  if ('url' in file) return { ...named, data: { type: 'url', url: new URL(file.url) } };
  if (!mediaType.startsWith('text/')) return { ...named, data: { type: 'data', data: file.raw } };
  return { ...named, data: { type: 'text', text: Buffer.from(file.raw, 'base64').toString('utf8') } };
}

export function toolsOf(tools: readonly ChatTool[]): LanguageModelV4FunctionTool[] {
  return tools.map(({ name, description, parameters }) => ({ type: 'function', name, description, inputSchema: parameters }));
}
