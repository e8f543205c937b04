export { MODEL_MS_MAX, MODEL_SETTINGS, OPENAI_BASE_URL_DEFAULT } from '@hopline/chat-model/limits';

/** Maximum MCP servers of one agent. */
export const AGENT_SERVERS_MAX = 16;
