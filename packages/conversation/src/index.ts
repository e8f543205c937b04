export { enterConversation, keyOfConversation } from './enter-conversation.ts';
export type { ConversationLimits } from './limits.ts';
export { CONVERSATION_LIMITS } from './limits.ts';
export type { Conversation } from './read-conversation.ts';
export { readConversation } from './read-conversation.ts';
