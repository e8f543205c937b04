export { createA2AAgent } from './a2a-agent.ts';
export type { A2ALimits, A2AOptions, AgentTls, Deltas, Skipped, StatusText } from './options.ts';
export { A2A_LIMITS, EXTENSIONS_MAX } from './options.ts';
