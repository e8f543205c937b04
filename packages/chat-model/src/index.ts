export type {
  ChatFile,
  ChatMessage,
  ChatModel,
  ChatTool,
  EndedRequest,
  ModelRequest,
  Step,
  StepEvent,
  ToolCall,
} from './chat.ts';
export { createChatModel } from './chat-model.ts';
export type { ChatModelOptions, ModelLimits } from './limits.ts';
export type { ModelErrorCode } from './model-error.ts';
export { ModelError } from './model-error.ts';
