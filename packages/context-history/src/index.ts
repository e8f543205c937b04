export { enterConversation, keyOfConversation } from './join-context.ts';
export type { ConversationLimits } from './limits.ts';
export { CONVERSATION_LIMITS } from './limits.ts';
export type { Conversation } from './read-context-history.ts';
export { readConversation } from './read-context-history.ts';
