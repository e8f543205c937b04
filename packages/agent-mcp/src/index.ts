export type { McpLimits } from './limits.ts';
export { MCP_LIMITS } from './limits.ts';
export type { McpOptions } from './mcp-agent.ts';
export { createMcpAgent } from './mcp-agent.ts';
export type { McpServer } from './mcp-session.ts';
