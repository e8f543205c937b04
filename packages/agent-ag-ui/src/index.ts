export type { AgUiAgentOptions } from './ag-ui-agent.ts';
export { createAgUiAgent } from './ag-ui-agent.ts';
