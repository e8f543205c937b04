export type { ModelAgentOptions } from './model-agent.ts';
export { createModelAgent } from './model-agent.ts';
