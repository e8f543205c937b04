export { MODEL_MS_MAX } from '@hopline/chat-model/limits';

/** Maximum MCP servers of one agent. */
export const AGENT_SERVERS_MAX = 16;
