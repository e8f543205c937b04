import type { LanguageModelV4FunctionTool, LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { ChatMessage, ChatTool } from './chat.ts';

/** Converts messages to the library's types. */
export function promptOf(messages: readonly ChatMessage[]): LanguageModelV4Prompt {
  return messages.map(promptMessage);
}

function promptMessage(message: ChatMessage): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.text };
    case 'user':
      return { role: 'user', content: [{ type: 'text', text: message.text }] };
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

export function toolsOf(tools: readonly ChatTool[]): LanguageModelV4FunctionTool[] {
  return tools.map(({ name, description, parameters }) => ({ type: 'function', name, description, inputSchema: parameters }));
}
