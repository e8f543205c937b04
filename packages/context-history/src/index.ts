export { contextKey, joinContext } from './join-context.ts';
export type { ContextHistoryLimits } from './limits.ts';
export { CONTEXT_HISTORY_LIMITS } from './limits.ts';
export type { ContextHistory } from './read-context-history.ts';
export { readContextHistory } from './read-context-history.ts';
