export { createA2AAgent } from './a2a-agent.ts';
export type { A2ALimits } from './limits.ts';
export { A2A_LIMITS, AGENT_EXTENSIONS_MAX } from './limits.ts';
export type { A2AOptions, AgentTls, Deltas, Skipped, StatusMeaning, Webhook, Webhooks } from './options.ts';
