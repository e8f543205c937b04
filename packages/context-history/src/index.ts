export { contextIdFor, contextKey, isContextInUse, joinContext } from './join-context.ts';
export type { ContextHistory, ContextHistoryLimits } from './read-context-history.ts';
export { CONTEXT_HISTORY_LIMITS, readContextHistory } from './read-context-history.ts';
