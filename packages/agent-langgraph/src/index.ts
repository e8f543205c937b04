export type { LangGraphOptions } from './langgraph-agent.ts';
export { createLangGraphAgent } from './langgraph-agent.ts';
export type { LocalGraphOptions } from './local-graph.ts';
export type { ServerGraphOptions } from './server-graph.ts';
