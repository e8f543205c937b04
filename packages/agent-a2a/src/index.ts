export { createA2AAgent } from './a2a-agent.ts';
export type { A2ALimits, A2AOptions, Deltas, Skipped, StatusText } from './options.ts';
export { A2A_LIMITS } from './options.ts';
