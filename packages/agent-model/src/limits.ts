export { MODEL_MS_MAX, OPENAI_BASE_URL_DEFAULT } from '@hopline/chat-model/limits';

/** Bounds of one turn, configurable. */
export const MODEL_AGENT_LIMITS = {
  /** Requests to the model. Each one except the last ends in tool calls. */
  stepsMax: 16,
  /** UTF-16 units of one tool result that the model reads. A longer text is cut, with a note. */
  toolResultUnitsMax: 64 * 1024,
} as const;

/** Upper bound of `stepsMax`. */
export const STEPS_MAX = 128;
/** Maximum tools offered to a model, which is OpenAI's limit (https://platform.openai.com/docs/api-reference/chat/create). */
export const TOOLS_MAX = 128;
/** Maximum MCP servers of one agent. */
export const SERVERS_MAX = 16;
